"""A copy of the storage from before a repartition is put back after it, and the new version does not start empty.

Its lineage is not there. It stands still with a reason until people put the newest state back, or accept the copy.
"""

from functools import partial

import pytest

from tests.scenario import schedule
from tests.scenario.events import copies, people
from tests.scenario.repartition_courses import (
    at_rest,
    not_run_in,
    phase_of,
    repartitioned,
    status_of,
    until,
)
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Result, run_course
from tests.scenario.world import ORDERS, World
from tidegate_spark.storage.claim import claiming
from tidegate_testing.mistakes import Course, planted

SEEDS = range(6)
SCHEDULES = 6
"""So many are tried when the recorded one no longer fails."""


def _stable_after_repartition(w: World) -> bool:
    return int((status_of(w).get("lastStable") or {}).get("lineage", 0)) > 1


def _at_gate_after_repartition(w: World) -> bool:
    return status_of(w).get("lineage", 0) > 1 and phase_of(w) == "Gate"


async def _refused_and_fixed(w: World) -> None:
    await until(w, "refused", lambda: reason_of(w.app(ORDERS) or {}) == "StorageOlder")
    await at_rest(w)


async def stable_before(w: World, result: Result) -> None:
    """The version with the other number of partitions is stable, and suspended while the backup is restored."""
    await repartitioned(w, _stable_after_repartition, {})
    await until(w, "restored", lambda: w.facts["restored an older storage"] or (copies.restore_storage(w) and None))
    await _refused_and_fixed(w)


async def at_the_gate(w: World, result: Result) -> None:
    """It is not stable yet: nothing but the batches of its driver shows that it has run in the lineage."""
    await repartitioned(w, _at_gate_after_repartition, {"stableBatches": 100, "timeoutSeconds": 86400})
    people.edit(w, ORDERS, {"suspend": True})
    await until(w, "restored", lambda: copies.put_copy_back(w, ORDERS))
    people.edit(w, ORDERS, {"suspend": False, "upgrade": {"stableBatches": 1}})
    await _refused_and_fixed(w)


async def before_the_driver(w: World, result: Result) -> None:
    """No driver has come up in the lineage, because a quota has no room for it: nothing shows that it is there."""
    await not_run_in(w)
    await until(w, "restored", lambda: copies.put_copy_back(w, ORDERS))
    w.quota = False
    await _refused_and_fixed(w)


COURSES = (stable_before, at_the_gate, before_the_driver)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_from_before_a_repartition_is_refused_until_somebody_decides(course: schedule.Course, seed: int) -> None:
    assert run_course(seed, course).violations == []


PLANTED = planted(__file__, ["without_a_look_for_the_lineage"])


def shows(seed: Course) -> bool:
    """Return whether a version starts with nothing in the lineage that was to have its state."""
    return any("which is not whole" in text for text in run_course(int(seed), before_the_driver).violations)


@pytest.mark.usefixtures("quiet_log")
def test_that_nobody_looks_for_the_lineage_of_a_repartition_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = partial(monkeypatch.setattr, claiming, "_before_repartition", lambda *_: None)
    PLANTED.assert_noticed_by_schedules("without_a_look_for_the_lineage", plant, shows, SCHEDULES)


def test_there_is_a_course_for_the_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == ["without_a_look_for_the_lineage"]
