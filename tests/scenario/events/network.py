"""What befalls requests and watches."""

from tests.scenario.api_server import APPS, MESSAGES, PODS
from tests.scenario.events import people
from tests.scenario.events.registry import event
from tests.scenario.faults import Fault
from tests.scenario.world import World


@event(4)
def bad_network(w: World) -> str | None:
    faults, seconds = w.faults, w.some(5.0, 90.0)
    kinds = (Fault.UNSENT, Fault.LOST, Fault.CONFLICT, Fault.THROTTLED, Fault.ERROR)
    faults.faults = {kind: w.some(0.0, 0.25) for kind in w.rng.sample(kinds, 2)}
    faults.slow = w.rng.choice((0.05, 2.0))

    def end() -> None:
        faults.faults, faults.slow = {}, 0.05

    w.later(seconds, end)
    return f"requests fail for {seconds:.0f} s: {', '.join(kind.value for kind in faults.faults)}"


@event(1)
def api_server_down(w: World) -> str | None:
    seconds = w.some(1.0, 60.0)
    w.faults.down = True

    def end() -> None:
        w.faults.down = False

    for each in w.operators:
        each.watches_broken = True
    w.api.nudge()
    w.later(seconds, end)
    return f"the API server is down for {seconds:.0f} s"


@event(3)
def late_watches(w: World) -> str | None:
    w.faults.longest_lag = w.rng.choice((0.1, 3.0, 30.0))
    return f"watches are up to {w.faults.longest_lag:g} s late from now"


@event(3)
def break_watches(w: World) -> str | None:
    expired = w.rng.random() < 0.5
    for each in w.operators:
        each.watches_broken = True
    if expired:
        w.api.oldest = w.api.version
    w.api.nudge()
    return "watches break" + (", and what comes meanwhile is not told" if expired else "")


@event(2)
def list_slowly(w: World) -> str | None:
    """What is listed is old when it is told; meanwhile a driver goes and another one comes."""
    w.faults.slow_lists = 20.0
    edited = people.restart(w)
    w.later(w.some(0.0, 10.0), _break_watches, w)
    w.later(60.0, setattr, w.faults, "slow_lists", 0.0)
    return f"lists take up to 20 s for a minute, and watches break soon; {edited or 'nothing is edited'}"


def _break_watches(w: World) -> None:
    for each in w.operators:
        each.watches_broken = True
    w.api.oldest = w.api.version
    w.api.nudge()


@event(5)
def stall_watch(w: World) -> str | None:
    if not w.operators:
        return None
    process, plural = w.operators[-1], w.rng.choice((PODS, PODS, APPS, MESSAGES))
    seconds = w.some(10.0, 100.0)
    process.stalled_until[plural] = w.now() + seconds
    return f"{process.name} hears nothing of {plural} for {seconds:.0f} s"
