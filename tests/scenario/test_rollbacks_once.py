"""A rollback is carried out once, whatever status comes back from before it.

The record of an upgrade in such a status could undo what has been undone, and with it all that was done since.
"""

import copy
from functools import partial

import pytest

from tests.scenario import schedule
from tests.scenario.api_server import Body
from tests.scenario.events import choose_among, losses, people
from tests.scenario.repartition_courses import at_rest, lineage_run_in, phase_of, status_of, until
from tests.scenario.schedule import Result, misfortune, run_course
from tests.scenario.world import ORDERS, World
from tidegate.app.rules.upgrade import adoption, record
from tidegate_spark.storage.claim import claiming
from tidegate_testing.mistakes import Course, Mistake, planted

SEEDS = range(12)
SCHEDULES = 200
"""So many are tried when the recorded one no longer fails."""
OLDER = misfortune(
    choose_among(
        losses.back_up,
        losses.restore_status,
        people.edit_args,
        people.break_next_version,
        people.ask_for_rollback,
    )
)


async def a_stable_version(w: World) -> None:
    """Have an application with a version that can be gone back to."""
    w.faults.clear()
    w.start_operator()
    rules = {"mode": "Snapshot", "rehearsal": None, "rollbackPolicy": "OnFailure", "stableBatches": 1}
    people.create(w, ORDERS, upgrade={**rules, "timeoutSeconds": 600})
    people.edit(w, ORDERS, {"restart": {"policy": "OnFailure", "maxFailures": 10}})
    await until(w, "stable", lambda: "lastStable" in status_of(w))


async def noted_until(w: World, phase: str, noted: list[Body]) -> None:
    """Note the statuses that the application has until its upgrade is so far."""

    def is_so() -> bool:
        status = status_of(w)
        if status.get("upgrade") and status not in noted:
            noted.append(copy.deepcopy(status))
        return phase_of(w) == phase

    await until(w, phase, is_so, seconds=2.0)


async def runs_on(w: World) -> None:
    """Have the application run on after a rollback."""
    lineage = status_of(w).get("lineage", 0)
    await until(w, "run in", lambda: lineage_run_in(w) == lineage)
    await w.sleep(w.rng.uniform(0.0, 300.0))


async def put_back(w: World, noted: list[Body]) -> None:
    """Have one of its earlier statuses put back."""
    app = w.app(ORDERS)
    assert app is not None
    losses.put_status(w, app, w.rng.choice(noted))
    losses.with_driver(w, app)
    if w.leader is not None and w.rng.random() < 0.5:
        w.crash(w.leader, "with what it knows of the rollback")
    await at_rest(w)


async def another_stable_version(w: World) -> list[Body]:
    """Have a version that has passed its gate after a stable one; return the statuses until then."""
    await a_stable_version(w)
    noted = list[Body]()
    people.edit(w, ORDERS, {"application": {"args": ["--new"]}})
    await noted_until(w, "Completed", noted)
    await w.sleep(w.rng.uniform(0.0, 100.0))
    return noted


async def failed(w: World, result: Result) -> None:
    """A version fails at its gate and is rolled back."""
    await a_stable_version(w)
    noted = list[Body]()
    app = w.app(ORDERS)
    assert app is not None
    people.edit(w, ORDERS, {"application": {"args": ["--broken"]}})
    w.bugs[app["metadata"]["uid"]] = w.check.hash_of(app)
    await noted_until(w, "RolledBack", noted)
    await runs_on(w)
    await put_back(w, noted)


async def asked_for(w: World, result: Result) -> None:
    """A version passes its gate, and somebody has it rolled back."""
    noted = await another_stable_version(w)
    pin = people.rollback_snapshot(w.app(ORDERS) or {})
    people.edit(w, ORDERS, {"upgrade": {"rollbackTo": pin}})
    await noted_until(w, "RolledBack", noted)
    await runs_on(w)
    await put_back(w, noted)


async def passed(w: World, result: Result) -> None:
    """A version passes its gate, and the next one is being started when a status of before comes back."""
    noted = await another_stable_version(w)
    epoch = status_of(w)["epoch"]
    people.edit(w, ORDERS, {"application": {"args": ["--third"]}})
    await until(w, "launched", lambda: status_of(w).get("epoch", 0) > epoch, seconds=0.5)
    await w.sleep(w.rng.uniform(0.0, 20.0))
    await put_back(w, noted)


COURSES = (failed, asked_for, passed, OLDER)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("course", COURSES, ids=["failed", "asked for", "passed", "older statuses"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_rolled_back_twice_whatever_status_comes_back(course: schedule.Course, seed: int) -> None:
    assert run_course(seed, course).violations == []


ONCE_MORE, NO_REST = "once more", "no rest"
MISTAKES = {
    "with_what_an_earlier_record_can_undo": Mistake(
        record,
        "_kept",
        "return None if upgrade.phase is UpgradePhase.FAILED else "
        "replace(without_rollback_snapshot(upgrade), previous=None)",
        "return upgrade",
    ),
    "without_comparing_launches": Mistake(claiming, "known_beside", "0 < config.follows_epoch < claim.epoch", "False"),
    "with_an_upgrade_from_before_the_launch": Mistake(
        adoption,
        "_void_by_later_launch",
        "return Step(adopt=(driver.epoch, status.lineage))",
        "return None",
    ),
}
SHOW: dict[str, tuple[schedule.Course, str]] = {
    "with_what_an_earlier_record_can_undo": (asked_for, ONCE_MORE),
    "without_comparing_launches": (passed, NO_REST),
    "with_an_upgrade_from_before_the_launch": (passed, NO_REST),
}
PLANTED = planted(__file__, MISTAKES)


def shows(name: str, seed: Course) -> bool:
    """Return whether an application is rolled back where it must not be."""
    course, broken = SHOW[name]
    return any(broken in text for text in run_course(int(seed), course).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_rollback_for_nothing_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = partial(MISTAKES[name].plant, monkeypatch)
    PLANTED.assert_noticed_by_schedules(name, plant, partial(shows, name), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
