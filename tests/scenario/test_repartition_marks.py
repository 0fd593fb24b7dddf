"""The object that says that a lineage is being made outlives what knew of it, and nothing is made twice or lost for it.

It is there from an attempt's first file until a driver is about to run in the lineage. In between the status may be
lost, or the application be another one that adopts the place; and a backup may bring the object back later.
"""

from functools import partial

import pytest

from tests.scenario import schedule
from tests.scenario.events import copies, losses, people
from tests.scenario.events.copies import batches_in
from tests.scenario.repartition_courses import (
    PREFIX,
    at_rest,
    is_made,
    lineage_run_in,
    marks,
    not_run_in,
    status_of,
    until,
    until_repartitioned,
)
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Result, run_course
from tests.scenario.world import ORDERS, World
from tidegate_spark.snapshots.lineages import attempts
from tidegate_testing.mistakes import Course, planted

SEEDS = range(6)
SCHEDULES = 6
"""So many are tried when the recorded one no longer fails."""


async def another_number(w: World) -> None:
    """Have another number of partitions asked for, until a driver has run with it."""
    before = lineage_run_in(w)

    people.edit(w, ORDERS, {"upgrade": {"mode": "Snapshot"}})  # somebody may have given the state up
    await until_repartitioned(w, "repartitioned once more", lambda: lineage_run_in(w) > before)
    await at_rest(w)


async def status_lost(w: World, result: Result) -> None:
    """The status is lost when the lineage is whole and before a driver ran in it, mostly with the operator's memory."""
    await not_run_in(w)
    await w.sleep(w.rng.uniform(0.0, 30.0))
    app = w.app(ORDERS)
    if app is None or not marks(w):
        w.violated("there is no mark, or no application")
        return
    losses.put_status(w, app, None)
    if w.leader is not None and w.rng.random() < 0.7:
        w.crash(w.leader, "with what it knows of the lineage")
    w.quota = False
    await at_rest(w)
    await another_number(w)


async def mark_put_back(w: World, result: Result) -> None:
    """The application runs in the lineage, and a backup brings the object back that says that it is being made."""
    await not_run_in(w)
    backup = {key: w.store.objects[key] for key in marks(w)}
    w.quota = False
    await until(w, "run in", lambda: not marks(w) and lineage_run_in(w) > 1)
    made = lineage_run_in(w)
    await until(w, "stable", lambda: (status_of(w).get("lastStable") or {}).get("lineage") == made)
    w.store.objects |= backup
    app = w.app(ORDERS)
    assert app is not None
    if w.rng.random() < 0.5:
        losses.put_status(w, app, None)
    if w.rng.random() < 0.7:
        w.api.delete(w.driver_path(ORDERS), grace=w.rng.choice((0, None)))
    await at_rest(w)
    await another_number(w)
    if made not in batches_in(PREFIX, w.store.objects):
        w.violated(f"lineage {made}, in which the application ran, is not there any more")


async def backup_put_back(w: World, result: Result) -> None:
    """It has run in the lineage, and the whole storage is as it was when an attempt had begun, or made the lineage."""
    await not_run_in(w, is_made if w.rng.random() < 0.5 else lambda world: bool(marks(world)))
    copies.keep_copy(w, ORDERS)
    w.quota = False
    await until_repartitioned(w, "stable", lambda: (status_of(w).get("lastStable") or {}).get("lineage", 0) > 1)
    await until(w, "known", lambda: copies.has_older_copy(w, ORDERS))
    people.edit(w, ORDERS, {"suspend": True})
    await until(w, "restored", lambda: copies.put_copy_back(w, ORDERS))
    if not marks(w):
        w.violated("there is no mark")
    people.edit(w, ORDERS, {"suspend": False})
    await until(w, "refused", lambda: reason_of(w.app(ORDERS) or {}) == "StorageOlder")
    await at_rest(w)
    await another_number(w)


async def adopted(w: World, result: Result) -> None:
    """The resource goes when an attempt has begun, or its lineage is whole, and another one adopts the place."""
    await not_run_in(w, is_made if w.rng.random() < 0.5 else lambda world: bool(marks(world)))
    people.edit(w, ORDERS, {"storage": {"deletionPolicy": "Retain"}})
    w.api.delete(w.app_path(ORDERS))
    await until(w, "gone", lambda: w.app(ORDERS) is None)
    if not marks(w):
        w.violated("there is no mark")
        return
    people.create(w, ORDERS, {"adopt": True}, {"mode": "Snapshot", "rehearsal": None, "stableBatches": 1})
    people.edit(w, ORDERS, {"restart": {"policy": "OnFailure", "maxFailures": 10}})
    people.edit(w, ORDERS, {"state": {"partitions": w.rng.choice((4, 8))}})
    w.quota = False
    await at_rest(w)
    await another_number(w)


COURSES = (status_lost, mark_put_back, backup_put_back, adopted)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_mark_that_outlives_what_knew_of_it_has_nothing_made_twice_and_no_lineage_lost(
    course: schedule.Course, seed: int
) -> None:
    assert run_course(seed, course).violations == []


PLANTED = planted(__file__, ["with_the_mark_believed_whatever_ran_there"])


def shows(seed: Course) -> bool:
    """Return whether the lineage goes in which the application ran."""
    return any("nobody wants that" in text for text in run_course(int(seed), mark_put_back).violations)


@pytest.mark.usefixtures("quiet_log")
def test_that_a_mark_is_believed_whatever_ran_in_its_lineage_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = partial(monkeypatch.setattr, attempts, "_has_own_batches", lambda *_: False)
    PLANTED.assert_noticed_by_schedules("with_the_mark_believed_whatever_ran_there", plant, shows, SCHEDULES)


def test_there_is_a_course_for_the_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == ["with_the_mark_believed_whatever_ran_there"]
