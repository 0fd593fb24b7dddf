"""Whichever store a spec names, an application never stands still for a place that another one has."""

from functools import partial

import pytest

from tests.scenario.desired import differences
from tests.scenario.events import choose_among, people, places
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Result, misfortune, run_course
from tests.scenario.world import INNER, ORDERS, World
from tidegate.app.rules import messages
from tidegate_testing.mistakes import Course, planted

SEEDS = (*range(25), 276, 359)
"""The last two have an edit whose place is taken while another version is under test."""
SCHEDULES = 100
"""So many are tried when the recorded one no longer fails."""
BROKEN = "stands still for a place that another application has"


def create_both(w: World) -> str | None:
    """Somebody creates the two whose places overlap, in a store each."""
    if w.app(ORDERS) is not None or w.app(INNER) is not None:
        return None
    reported = people.create(w, ORDERS), people.create(w, INNER)
    moved = people.edit(w, INNER, {"storage": {"endpoint": places.OTHER_STORE}})
    return "; ".join((*reported, moved))


def name_the_others_store(w: World) -> str | None:
    """Somebody has one of them use the store that the other one is in, or takes that back."""
    app = w.app(w.rng.choice((ORDERS, INNER)))
    if app is None or "lastStable" not in (app.get("status") or {}):
        return None
    endpoint = None if app["spec"]["storage"].get("endpoint") else places.OTHER_STORE
    return people.edit(w, app["metadata"]["name"], {"storage": {"endpoint": endpoint}})


TAKEN = misfortune(
    choose_among(
        create_both,
        create_both,
        name_the_others_store,
        name_the_others_store,
        name_the_others_store,
        people.edit_args,
        people.break_next_version,
        people.suspend_or_resume,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_application_goes_on_where_it_is_while_another_one_has_the_place_of_an_edit(seed: int) -> None:
    assert run_course(seed, TAKEN).violations == []


async def edited_at_the_gate(w: World, result: Result) -> None:
    """A version under test waits for input, and its spec names the place that another application has."""
    w.faults.clear()
    w.start_operator()
    rules = {"mode": "LastState", "rehearsal": None}
    people.create(w, ORDERS)
    people.create(w, INNER, upgrade=rules)
    people.edit(w, INNER, {"storage": {"endpoint": places.OTHER_STORE}})
    await w.sleep(600.0)
    w.input = False
    people.edit(w, INNER, {"application": {"args": ["--a"]}, "upgrade": rules})
    await w.sleep(300.0)
    people.edit(w, INNER, {"storage": {"endpoint": None}})
    await w.sleep(300.0)
    app = w.app(INNER) or {}
    if (people.phase_of_upgrade(app), reason_of(app)) != ("Gate", "StorageConflict"):
        w.violated(f"{INNER} is at {people.phase_of_upgrade(app)} because of {reason_of(app)}")
    for text in differences(w):
        w.violated(text)


@pytest.mark.usefixtures("quiet_log")
def test_a_version_at_its_gate_runs_on_beside_an_edit_into_a_taken_place_and_the_world_is_at_rest() -> None:
    assert run_course(0, edited_at_the_gate).violations == []


PLANTED = planted(__file__, ["without_a_look_at_places"])


def shows(seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(BROKEN in text for text in run_course(int(seed), TAKEN).violations)


@pytest.mark.usefixtures("quiet_log")
def test_that_places_are_looked_at_too_late_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = partial(monkeypatch.setattr, messages, "place_taken", lambda rival: "")
    PLANTED.assert_noticed_by_schedules("without_a_look_at_places", plant, shows, SCHEDULES)
