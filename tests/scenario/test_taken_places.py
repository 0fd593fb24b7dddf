"""Whichever store a spec names, an application never stands still for a place that another one has."""

from functools import partial

import pytest

from tests.scenario.happenings import choose_among, people, places
from tests.scenario.schedule import misfortune, run_course
from tests.scenario.world import INNER, ORDERS, World
from tidegate.app.rules import messages
from tidegate_testing.mistakes import Course, planted

SEEDS = range(25)
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


PLANTED = planted(__file__, ["without_a_look_at_places"])


def shows(seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(BROKEN in text for text in run_course(int(seed), TAKEN).violations)


@pytest.mark.usefixtures("quiet_log")
def test_that_places_are_looked_at_too_late_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = partial(monkeypatch.setattr, messages, "place_taken", lambda rival: "")
    PLANTED.assert_noticed_by_schedules("without_a_look_at_places", plant, shows, SCHEDULES)
