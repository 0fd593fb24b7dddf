"""The storage becomes an older copy of itself, and the batch never falls unless somebody accepted that.

The application stands still with a reason, or its upgrade is rolled back to the store that has the newest state.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.events import choose_among, copies, people
from tests.scenario.schedule import misfortune, run_course
from tidegate.api.streaming_app import SnapshotBatch
from tidegate.app.observation import Observation
from tidegate.app.rules import status
from tidegate.app.rules.pods import last_batch
from tidegate.cache import index
from tidegate.cache.known_apps import age_of
from tidegate_spark.storage.claim import claiming
from tidegate_testing.mistakes import Course, planted

SEEDS = range(30)
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""
COPIES = misfortune(
    choose_among(
        *(copies.back_up_storage,) * 3,
        *(copies.restore_storage,) * 5,
        *(copies.name_store_with_copy,) * 3,
        people.suspend_or_resume,
        people.restart,
        people.create_app,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_older_copy_of_the_storage_is_not_gone_on_with_unless_somebody_accepts_it(seed: int) -> None:
    assert run_course(seed, COPIES).violations == []


def without_comparing_batches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claiming, "first_older", lambda *_: None)


def with_batches_that_never_fall(patch: pytest.MonkeyPatch) -> None:
    """Have the status keep the highest batch, as it did before a person's acceptance counted."""
    known_since = last_batch.last_batches

    def highest(o: Observation, lineage: int) -> tuple[SnapshotBatch, ...]:
        known = {query.name: query for query in o.app.status.batches if lineage == o.app.status.lineage}
        for query in known_since(o, lineage):
            before = known.get(query.name)
            known[query.name] = query if before is None or query.batch_id > before.batch_id else before
        return tuple(known[name] for name in sorted(known))

    patch.setattr(status, "last_batches", highest)


def with_the_place_for_the_oldest(patch: pytest.MonkeyPatch) -> None:
    """Have the older one have a place, wherever it was launched: it may be moved to where a younger one runs."""
    patch.setattr(index.Index, "_order", lambda known, app, wanted: age_of(app))


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken)
    for take_out, broken in (
        (without_comparing_batches, "is committed after"),
        (with_batches_that_never_fall, "is refused the older copy that was accepted"),
        (with_the_place_for_the_oldest, "drivers write"),
    )
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), COPIES).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_older_copies_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
