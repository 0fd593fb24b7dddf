"""What holds for every course of events around the messages to an application. Pure."""

import random
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.api.control_message import MessagePhase
from tidegate.control.rules import dispatch, status
from tidegate.control.rules.verdict import Seen
from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD
from tidegate_testing.control_simulation import ControlWorld
from tidegate_testing.examples import gate_share

STEPS = 300
NAMES = "cabd"


def send(world: ControlWorld, number: int) -> None:
    world.send(f"{NAMES[number % 4]}-{len(world.sent)}")


def send_for_a_while(world: ControlWorld, number: int) -> None:
    world.send(f"{NAMES[number % 4]}-{len(world.sent)}", ttl=number + 1)


def send_too_much(world: ControlWorld, number: int) -> None:
    world.send(f"{NAMES[number % 4]}-{len(world.sent)}", payload="x" * LARGEST_PAYLOAD)


def delete(world: ControlWorld, number: int) -> None:
    names = sorted(world.stored)
    if names:
        world.delete(names[number % len(names)])


def deaf(world: ControlWorld, number: int) -> None:
    world.deaf = bool(number % 2)


def go_on(world: ControlWorld, number: int) -> None:
    """For a moment nothing is in the way."""
    while world.unseen:
        world.see()
    world.hear()
    world.check()
    world.deliver()
    world.append(number)


EVENTS: dict[str, Callable[[ControlWorld, int], object]] = {
    "send": send,
    "send another": send,
    "send for a while": send_for_a_while,
    "send too much": send_too_much,
    "delete": delete,
    "see": lambda world, number: world.see(),
    "hear": lambda world, number: world.hear(),
    "deliver": lambda world, number: world.deliver(),
    "lose": lambda world, number: world.deliver(lost=True),
    "append": lambda world, number: world.append(number),
    "end": lambda world, number: world.end(number),
    "driver restarts": lambda world, number: world.restart_driver(),
    "leader changes": lambda world, number: world.change_leader(),
    "made": lambda world, number: world.app_is_made(),
    "rests": lambda world, number: world.app_rests(),
    "goes": lambda world, number: world.app_goes(),
    "deaf": deaf,
    "look": lambda world, number: None,
    "goes on": go_on,
    "goes on again": go_on,
}
Step = tuple[str, int, int | None, float]
"""What happens and with which number, after how many actions the operator dies then, and how many seconds pass."""
courses = st.lists(
    st.tuples(
        st.sampled_from(sorted(EVENTS)),
        st.integers(0, 7),
        st.one_of(st.none(), st.integers(0, 6)),
        st.sampled_from((0.0, 0.0, 0.3, 1.0, 5.0, 16.0, 61.0)),
    ),
    max_size=40,
)
WEIGHTS = {
    "send": 5,
    "send another": 5,
    "goes on": 9,
    "goes on again": 5,
    "see": 5,
    "hear": 4,
    "deliver": 4,
    "append": 4,
}
"""Of what has to happen often for anything to come of it; everything else has 1."""
SCHEDULES = gate_share(400)


def schedule(seed: int) -> list[Step]:
    """Return a long course in which much comes of the messages."""
    rng = random.Random(seed)
    names = sorted(EVENTS)
    drawn = rng.choices(names, [WEIGHTS.get(name, 1) for name in names], k=rng.randint(20, 80))
    crashes = rng.choice((0.0, 0.1, 0.3))
    gaps = (0.0, 0.0, 0.3, 1.0, 5.0)
    return [
        (name, rng.randrange(8), rng.randrange(6) if rng.random() < crashes else None, rng.choice(gaps))
        for name in drawn
    ]


def check(world: ControlWorld) -> None:
    for uid, driver in world.drivers.items():
        assert len(driver.log) == len(set(driver.log))
        assert driver.log == sorted(driver.log, key=world.sent.index), f"{uid} has them in another order"
    logged = world.logged()
    assert len(logged) == len(set(logged)), "two applications have one message"
    for uid, ended in world.ends.items():
        if ended.phase is MessagePhase.EXPIRED and not ended.sequence:
            assert uid not in logged, "called expired, and is in the log"
        if ended.phase is MessagePhase.FAILED and ended.conditions[0].reason == "PayloadTooLarge":
            assert uid not in logged


def live(world: ControlWorld, course: list[Step]) -> None:
    for event, number, crash_after, seconds in course:
        EVENTS[event](world, number)
        world.now += seconds
        world.check(crash_after)
        check(world)


def settle(world: ControlWorld) -> None:
    """Fair weather: everything arrives, and something comes of every message."""
    world.deaf = False
    if not world.runs:
        world.app_is_made()
    for number in range(STEPS):
        while world.unseen:
            world.see()
        while world.under_way:
            world.deliver()
        world.append(99)
        world.end(number)
        world.hear()
        decided = world.check()
        check(world)
        if not decided.actions and not world.unseen and all(of.is_final for of in world.stored.values()):
            if world.driver is None or not world.driver.reported or decided.wake_after is None:
                return
            # Given once more after it was forgotten, as a late order is: it is forgotten again after a pause.
            world.now += decided.wake_after
        world.now += 1.0
    raise AssertionError(f"no rest after {STEPS} steps: {decided}")


@given(courses)
@example(
    [
        ("made", 0, None, 0.0),
        ("send", 0, None, 0.0),
        ("goes on", 1, None, 5.0),
        ("delete", 0, None, 0.0),
        ("goes on", 0, None, 0.0),
    ]
)
def test_each_message_is_in_the_log_once_and_in_order_whatever_happens(
    course: list[Step],
) -> None:
    world = ControlWorld()
    live(world, course)
    settle(world)
    for of in world.stored.values():
        if of.status.phase is MessagePhase.APPLIED:
            assert of.metadata.uid in world.logged()
    assert world.driver is not None
    assert world.driver.reported == [], "something is reported for ever"


@given(courses)
def test_what_nothing_speaks_against_gets_into_the_log(course: list[Step]) -> None:
    gone = ("delete", "goes", "send too much", "send for a while")
    world = ControlWorld()
    live(world, [step for step in course if step[0] not in gone])
    settle(world)
    assert world.driver is not None
    assert world.driver.log == world.sent


@given(courses)
def test_everything_that_has_ended_is_removed_in_the_end(course: list[Step]) -> None:
    world = ControlWorld()
    live(world, course)
    settle(world)
    world.now += 86_400.0
    world.check()
    assert world.stored == {}


def test_schedules_in_which_much_happens_break_no_rule_and_come_to_rest() -> None:
    facts: Counter[str] = Counter()
    for seed in range(SCHEDULES):
        world = ControlWorld()
        world.app_is_made()
        try:
            live(world, schedule(seed))
            facts["in a log before the weather is fair"] += len(world.logged())
            facts["two applications with logs"] += sum(1 for driver in world.drivers.values() if driver.log) > 1
            settle(world)
        except AssertionError as error:
            raise AssertionError(f"schedule {seed}: {error}") from error
        facts.update(f"{ended.phase} {ended.conditions[0].reason}" for ended in world.ends.values())
    print(facts)
    # Or the schedules test less than they seem to.
    wanted = ("Applied Applied", "Failed AppReplaced", "Failed PayloadTooLarge", "Failed RolledBack", "Expired Expired")
    assert min(facts[name] for name in wanted) > SCHEDULES / 10
    assert facts["in a log before the weather is fair"] > 2 * SCHEDULES
    assert facts["two applications with logs"] > 0


# --- the simulation bites: with any one of the safeguards taken out it ends in what must never happen ---


def test_without_the_place_in_the_status_messages_of_one_second_change_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written to the first one, whose orders get lost, makes its version later than that of the second."""
    build = status.build_message_status
    monkeypatch.setattr(
        "tidegate.control.rules.plan.build_message_status",
        lambda seen, verdict, offered: msgspec.structs.replace(build(seen, verdict, offered), order=""),
    )
    world = ControlWorld()
    world.app_is_made()
    world.send("z")
    world.send("a")
    world.see()
    world.hear()
    world.check()
    world.deliver(lost=True)
    world.see()
    world.check()
    world.deliver()
    world.append(2)
    with pytest.raises(AssertionError, match="another order"):
        check(world)


def test_without_the_intent_a_message_that_is_called_expired_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seen, "was_offered", property(lambda self: False))
    world = ControlWorld()
    world.app_is_made()
    world.send("a", ttl=1)
    world.see()
    world.hear()
    world.check()
    world.deliver()
    world.append(1)
    world.app_rests()
    world.now += 60.0
    world.check()
    with pytest.raises(AssertionError, match="called expired"):
        check(world)


def test_without_a_line_later_messages_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    fitting = dispatch._fitting
    monkeypatch.setattr(dispatch, "_fitting", lambda line, room, size: tuple(reversed(fitting(line, room, size))))
    world = ControlWorld()
    world.send("a")
    world.send("b")
    with pytest.raises(AssertionError, match="another order"):
        settle(world)


def test_without_the_uid_of_the_application_another_one_gets_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.control.rules.ending.refers_to_its_app", lambda seen: True)
    world = ControlWorld()
    world.app_is_made()
    world.send("a")
    world.see()
    world.hear()
    world.check()
    world.deliver()
    world.append(1)
    world.app_goes()
    with pytest.raises(AssertionError, match="two applications"):
        settle(world)
