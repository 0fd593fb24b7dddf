"""What befalls operator processes."""

from tests.scenario.api_server import PODS
from tests.scenario.coverage import PAIRS
from tests.scenario.events import people
from tests.scenario.events.leads import lead_to
from tests.scenario.events.registry import event
from tests.scenario.world import World


@event(6)
def aim_crash(w: World) -> str | None:
    w.faults.aimed = w.rng.choice(PAIRS)
    action, effect, point = w.faults.aimed
    lead = lead_to(w, action, effect)
    return f"the operator dies when it gets to {action} {effect}, {point.name.lower()}" + (lead and f"; {lead}")


@event(3)
def arm_crash(w: World) -> str | None:
    w.faults.armed = w.rng.randrange(1, 14)
    return f"the operator dies at the crash point number {w.faults.armed} from now"


@event(1)
def crash_operator(w: World) -> str | None:
    if w.leader is None:
        return None
    w.crash(w.leader, "of a fault of its own")
    return "the leader is killed"


@event(3)
def change_leader_in_a_restart(w: World) -> str | None:
    """The next leader has heard of a driver's end, and hears of the next driver late."""
    leader = w.leader
    standbys = [each for each in w.operators if each is not leader]
    edited = people.restart(w) if leader is not None and standbys else None
    if leader is None or edited is None:
        return None
    since, behind = w.some(0.0, 20.0), w.some(20.0, 100.0)
    for each in standbys:
        w.later(since, each.stalled_until.update, {PODS: w.now() + since + behind})
    w.later(since + w.some(0.0, 10.0), w.crash, leader, "and the next one is behind")
    return f"{edited}, and the leader dies meanwhile"


@event(3)
def stop_leader(w: World) -> str | None:
    leader = w.leader
    if leader is None or not leader.go_on.is_set():
        return None
    seconds = w.some(1.0, 60.0)
    leader.go_on.clear()

    def go_on() -> None:
        w.trace(leader.name, "goes on")
        leader.go_on.set()
        if not w.leads(leader):
            w.later(w.some(0.0, 1.0), w.crash, leader, "notices that it does not lead any more")

    w.later(10.0, w.lose_lease, leader)
    w.later(seconds, go_on)
    return f"{leader.name} is stopped for {seconds:.0f} s"


@event(2)
def cut_off_leader(w: World) -> str | None:
    leader = w.leader
    if leader is None:
        return None
    leader.cut_off = True
    w.api.nudge()
    w.later(10.0, w.lose_lease, leader)
    w.later(7.0, w.crash, leader, "could not renew its lease")
    return f"{leader.name} is cut off from the API server"


@event(1)
def jump_clock(w: World) -> str | None:
    if w.leader is None:
        return None
    w.leader.skew += w.rng.choice((-3600.0, -90.0, -5.0, 5.0, 90.0, 3600.0))
    return f"{w.leader.name}'s clock is {w.leader.skew:.0f} s ahead now"


@event(0.3)
def lose_the_key(w: World) -> str | None:
    """The operator is installed again, without the Secret that it had: what runs was launched with another key."""
    if w.api.find(w.key_path) is None or not w.operators:
        return None
    w.api.delete(w.key_path)
    for each in list(w.operators):
        w.crash(each, "is installed again")
    return "the operator is installed again, and its key is lost"
