"""A copy of the storage from before a repartition is put back after it, and the new version does not start empty.

Its lineage is not there. It stands still with a reason until people put the newest state back, or accept the copy.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario import schedule
from tests.scenario.api_server import PODS, Body
from tests.scenario.desired import differences
from tests.scenario.happenings import copies, people
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Result, fix, run_course
from tests.scenario.world import ORDERS, World
from tidegate_spark.storage.claim import claiming
from tidegate_testing.mistakes import Course, planted

SEEDS = range(6)
SCHEDULES = 6
"""So many are tried when the recorded one no longer fails."""
_LOOK, _LONGEST, _AT_REST = 20.0, 4000.0, 4
"""Seconds between two looks, and in all; so many looks in a row find everything at rest."""


def _status(w: World) -> Body:
    return (w.app(ORDERS) or {}).get("status") or {}


def _phase(w: World) -> str:
    app = w.app(ORDERS)
    return "" if app is None else people.phase_of_upgrade(app)


async def _until(w: World, what: str, is_so: Callable[[], object], seconds: float = _LOOK) -> None:
    for _ in range(int(_LONGEST / seconds)):
        if is_so():
            return
        await w.sleep(seconds)
    w.violated(f"{ORDERS} never comes to this: {what}")


def _stable_after_repartition(w: World) -> bool:
    return int((_status(w).get("lastStable") or {}).get("lineage", 0)) > 1


def _at_gate_after_repartition(w: World) -> bool:
    return _status(w).get("lineage", 0) > 1 and _phase(w) == "Gate"


async def _repartitioned(w: World, is_so: Callable[[World], bool], rules: Body, seconds: float = _LOOK) -> None:
    """Have an application, a backup of its storage, and then another number of partitions, until it is so far."""
    w.faults.clear()
    w.start_operator()
    people.create(w, ORDERS, upgrade={"mode": "Snapshot", "rehearsal": None, "stableBatches": 1, "timeoutSeconds": 600})
    people.edit(w, ORDERS, {"restart": {"policy": "OnFailure", "maxFailures": 10}})
    await _until(w, "stable", lambda: "lastStable" in _status(w))
    await _until(w, "backed up", lambda: copies.back_up_storage(w) and w.copies)
    people.edit(w, ORDERS, {"state": {"partitions": 8}, "upgrade": rules})

    def is_there() -> bool:
        if not is_so(w) and _phase(w) not in people.UNDER_WAY:
            people.repartition_stable(w)  # an attempt may fail for good
        return is_so(w)

    await _until(w, "repartitioned", is_there, seconds)


async def _refused_and_fixed(w: World) -> None:
    await _until(w, "refused", lambda: reason_of(w.app(ORDERS) or {}) == "StorageOlder")
    at_rest = 0
    for _ in range(int(_LONGEST / _LOOK)):
        at_rest = 0 if differences(w) else at_rest + 1
        if at_rest == _AT_REST:
            return
        fix(w)
        await w.sleep(_LOOK)
    w.violated(f"no rest: {'; '.join(differences(w))}")


async def stable_before(w: World, result: Result) -> None:
    """The version with the other number of partitions is stable, and suspended while the backup is restored."""
    await _repartitioned(w, _stable_after_repartition, {})
    await _until(w, "restored", lambda: w.facts["restored an older storage"] or (copies.restore_storage(w) and None))
    await _refused_and_fixed(w)


async def at_the_gate(w: World, result: Result) -> None:
    """It is not stable yet: nothing but the batches of its driver shows that it has run in the lineage."""
    await _repartitioned(w, _at_gate_after_repartition, {"stableBatches": 100, "timeoutSeconds": 86400})
    people.edit(w, ORDERS, {"suspend": True})
    await _until(w, "restored", lambda: copies.put_copy_back(w, ORDERS))
    people.edit(w, ORDERS, {"suspend": False, "upgrade": {"stableBatches": 1}})
    await _refused_and_fixed(w)


async def before_the_driver(w: World, result: Result) -> None:
    """No driver has come up in the lineage, because a quota has no room for it: nothing shows that it is there."""

    def is_made(world: World) -> bool:
        made = world.facts["repartition done"] > 0
        pods = [pod for pod in world.api.all(PODS) if "-repartition-" in pod["metadata"]["name"]]
        world.quota = made or any(pod.get("status", {}).get("phase") == "Running" for pod in pods)
        return made

    await _repartitioned(w, is_made, {}, seconds=0.5)
    await _until(w, "restored", lambda: copies.put_copy_back(w, ORDERS))
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
