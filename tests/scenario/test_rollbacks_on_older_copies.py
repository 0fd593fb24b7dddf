"""An upgrade is rolled back by hand on an older copy of the storage: exactly to where it was, or not at all."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.events import choose_among, copies, people
from tests.scenario.schedule import Course as EventCourse
from tests.scenario.schedule import misfortune, run_course
from tidegate.pods.builders import driver_config
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
UNDONE = misfortune(
    choose_among(
        *(copies.back_up_storage,) * 3,
        *(copies.restore_storage,) * 5,
        *(copies.name_store_with_copy,) * 6,
        *(people.restart,) * 4,
        people.create_app,
    )
)
"""A version in a store with an older copy is rolled back into one that has another, and the next version follows it."""
OF_UNDONE = (102, 238)
"""Seeds in which one such rollback follows another, both without a driver that ran."""
BROKEN = "could be rolled back to batch"


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollback_on_an_older_copy_ends_where_the_version_was_or_stands_still(seed: int) -> None:
    assert run_course(seed, ROLLBACKS).violations == []


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", [*range(10), *OF_UNDONE])
def test_what_is_rolled_back_after_a_rollback_that_never_ran_ends_there_too_or_stands_still(seed: int) -> None:
    assert run_course(seed, UNDONE).violations == []


def without_comparing_what_a_rollback_leaves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claiming, "_refuse_older_than_left", lambda *_: None)


def with_the_batches_of_one_lineage(patch: pytest.MonkeyPatch) -> None:
    """Have a launch name batches of the lineage that is left alone, and of none that it falls back to."""
    patch.setattr(driver_config, "_batches_left_before", lambda *_: ())


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], EventCourse]] = {
    take_out.__name__: (take_out, course)
    for take_out, course in (
        (without_comparing_what_a_rollback_leaves, ROLLBACKS),
        (with_the_batches_of_one_lineage, UNDONE),
    )
}
PLANTED = planted(__file__, MISTAKES)


def shows(course: EventCourse, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(BROKEN in text for text in run_course(int(seed), course).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_rollbacks_on_older_copies_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, course = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, course), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
