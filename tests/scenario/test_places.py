"""Whatever store the spec names, and whatever is lost beside it, an application never starts empty unasked.

It goes on where its storage says, also if it started from a snapshot that is long gone, or says why not.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.events import choose_among, losses, people, places
from tests.scenario.schedule import misfortune, run_course
from tidegate.api import lost_status
from tidegate.api.streaming_app import StreamingApp
from tidegate.app.rules.live import start_from
from tidegate.app.rules.upgrade import adoption
from tidegate.pods.builders import driver_config
from tidegate_spark.contract.protocol import EXPECTS_NOTHING
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.mistakes import Course, planted

SEEDS = range(40)
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""
PLACES = misfortune(
    choose_among(
        places.create_fork,
        places.create_fork,
        places.create_origin,
        places.lose_origin,
        places.lose_beginning,
        places.lose_beginning,
        places.lose_beginning_unread,
        places.name_other_store,
        places.name_other_store,
        places.name_own_store,
        losses.back_up,
        places.lose_status,
        places.restore_status,
        people.edit_args,
        people.start_over,
        people.break_next_version,
        people.suspend_or_resume,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_application_goes_on_where_its_storage_says_or_says_why_not_and_never_starts_empty(seed: int) -> None:
    assert run_course(seed, PLACES).violations == []


def without_asking_the_storage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(start_from, "may_have_launched", lambda app: False)


def with_a_report_for_a_decision(patch: pytest.MonkeyPatch) -> None:
    def may_have_launched(app: StreamingApp) -> bool:
        ready = app.status.condition("Ready")
        return lost_status.may_have_launched(app) and (ready is None or ready.reason != Reason.INVALID_SPEC)

    patch.setattr(start_from, "may_have_launched", may_have_launched)


def without_expecting_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(driver_config, "_expects", lambda app, lineage: EXPECTS_NOTHING)


def with_every_answer_believed(patch: pytest.MonkeyPatch) -> None:
    without_expecting_state(patch)
    for module in (start_from, adoption):
        patch.setattr(module, "unproven_place", lambda o: None)


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken)
    for take_out, broken in (
        (without_asking_the_storage, "waits for the snapshot that it has long started from"),
        (with_a_report_for_a_decision, "waits for the snapshot that it has long started from"),
        (without_expecting_state, "; it ran in"),
        (with_every_answer_believed, "and is to start from a snapshot"),
    )
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), PLACES).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_places_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
