"""The storage contradicts itself: its lineages go beyond its claim and fence, and the status is lost.

As in a bucket that was copied key by key during a change of lineage, or where somebody restored the two small objects.
"""

import json
from functools import partial

import pytest

from tests.scenario.events import copies, losses, people
from tests.scenario.repartition_courses import (
    PREFIX,
    at_rest,
    lineage_run_in,
    phase_of,
    repartitioned,
    status_of,
    until,
)
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Course as Happening
from tests.scenario.schedule import Result, run_course
from tests.scenario.world import ORDERS, World
from tidegate_spark.contract.protocol import APP_FILE, FENCE_FILE
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage.claim import later_lineages
from tidegate_testing.mistakes import Course, planted

SEEDS = range(6)
SCHEDULES = 6
"""So many are tried when the recorded one no longer fails."""


async def put_back(w: World, result: Result) -> None:
    """Claim and fence are those from before a repartition; a person names the lineage in which it ended."""
    await repartitioned(w, lambda world: lineage_run_in(world) > 1, {})
    await _put_back(w)


async def put_back_to_state_that_was_given_up(w: World, result: Result) -> None:
    """Claim and fence are those from before a start without state; a person names the lineage that it began."""
    await repartitioned(w, lambda world: lineage_run_in(world) > 1, {})
    await until(w, "decided", lambda: phase_of(w) not in people.UNDER_WAY)
    given_up = lineage_run_in(w)
    w.api.patch(w.app_path(ORDERS), {"metadata": {"annotations": {"tidegate.dev/abandon-state": str(given_up)}}})
    people.edit(w, ORDERS, {"restartNonce": 300, "upgrade": {"mode": "Stateless"}})
    await until(w, "started empty", lambda: lineage_run_in(w) > given_up)
    people.edit(w, ORDERS, {"upgrade": {"mode": "Snapshot"}})
    await _put_back(w)


async def _put_back(w: World) -> None:
    await until(
        w, "at rest", lambda: phase_of(w) not in people.UNDER_WAY and reason_of(w.app(ORDERS) or {}) == "Running"
    )
    ended = lineage_run_in(w)
    people.edit(w, ORDERS, {"suspend": True})
    await until(w, "suspended", lambda: not copies.has_driver(w, ORDERS) and status_of(w).get("phase") == "Suspended")
    app = w.app(ORDERS)
    assert app is not None
    for name in (APP_FILE, FENCE_FILE):
        w.store.objects[f"{PREFIX}/{name}"] = w.copies[PREFIX][f"{PREFIX}/{name}"]
    epoch = json.loads(w.copies[PREFIX][f"{PREFIX}/{APP_FILE}"])["epoch"]
    w.check.put_back(PREFIX, app["metadata"]["uid"], epoch)
    losses.put_status(w, app, None)
    people.edit(w, ORDERS, {"suspend": False})
    await until(w, "told", lambda: reason_of(w.app(ORDERS) or {}) == Reason.STORAGE_OLDER or lineage_run_in(w) != ended)
    w.api.patch(w.app_path(ORDERS), {"spec": {"startFrom": {"adopt": True, "adoptLineage": ended}}})
    await until(w, "running", lambda: copies.has_driver(w, ORDERS) and status_of(w).get("phase") == "Running")
    w.api.patch(w.app_path(ORDERS), {"spec": {"startFrom": None}})
    await at_rest(w)
    if lineage_run_in(w) != ended:
        w.violated(f"it runs in lineage {lineage_run_in(w)}, and had ended in {ended}")


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("course", [put_back, put_back_to_state_that_was_given_up])
@pytest.mark.parametrize("seed", SEEDS)
def test_beside_a_later_lineage_nothing_runs_before_a_person_has_named_it(course: Happening, seed: int) -> None:
    assert run_course(seed, course).violations == []


PLANTED = planted(__file__, ["without_looking_at_later_lineages"])


def shows(seed: Course) -> bool:
    """Return whether the application runs in the earlier lineage."""
    return any("runs in lineage" in text for text in run_course(int(seed), put_back).violations)


@pytest.mark.usefixtures("quiet_log")
def test_that_nobody_looks_at_later_lineages_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = partial(monkeypatch.setattr, later_lineages, "later_than", lambda *_: [])
    PLANTED.assert_noticed_by_schedules("without_looking_at_later_lineages", plant, shows, SCHEDULES)


def test_there_is_a_course_for_the_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == ["without_looking_at_later_lineages"]
