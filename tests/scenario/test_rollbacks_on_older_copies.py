"""An upgrade is rolled back by hand on an older copy of the storage: exactly to where it was, or not at all."""

from functools import partial

import pytest

from tests.scenario.happenings import choose_among, copies, people
from tests.scenario.schedule import misfortune, run_course
from tidegate_spark.storage.claim import claiming
from tidegate_testing.mistakes import Course, planted

SEEDS = range(20)
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""
ROLLBACKS = misfortune(
    choose_among(
        *(copies.back_up_storage,) * 3,
        *(copies.restore_storage_and_roll_back,) * 4,
        copies.restore_storage,
        people.ask_for_rollback,
        people.edit_args,
        people.restart,
        people.create_app,
    )
)
BROKEN = "could be rolled back to batch"


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollback_on_an_older_copy_ends_where_the_version_was_or_stands_still(seed: int) -> None:
    assert run_course(seed, ROLLBACKS).violations == []


def without_comparing_what_a_rollback_leaves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claiming, "_refuse_older_than_left", lambda *_: None)


MISTAKES = {without_comparing_what_a_rollback_leaves.__name__: without_comparing_what_a_rollback_leaves}
PLANTED = planted(__file__, MISTAKES)


def shows(seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(BROKEN in text for text in run_course(int(seed), ROLLBACKS).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_rollbacks_on_older_copies_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED.assert_noticed_by_schedules(name, partial(MISTAKES[name], monkeypatch), shows, SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
