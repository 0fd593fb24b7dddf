"""Whatever is lost of a status while versions change, an application goes on in its lineage, or says why not.

The schedules of ``test_schedules.py`` have these misfortunes, too, among fifty others; here they follow one another.
"""

import dataclasses
from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.events import choose_among, losses, people
from tests.scenario.schedule import misfortune, run_course
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.storage.claim import claiming, fence, later_lineages
from tidegate_spark.storage.claim.claimed import Claim, Known
from tidegate_spark.storage.claim.fence import Holder
from tidegate_testing.mistakes import Course, planted

SEEDS = (*range(25), 293)
"""In the last one somebody writes the lineage into a status that the upgrade under way opens."""
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""
LOSSES = misfortune(
    choose_among(
        losses.lose_status,
        losses.restore_status,
        losses.edit_status,
        losses.back_up,
        people.edit_args,
        people.repartition_stable,
        people.start_over,
        people.ask_for_rollback,
        people.break_next_version,
        people.suspend_or_resume,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_application_goes_on_where_it_was_or_says_why_not_whatever_is_lost_of_its_status(seed: int) -> None:
    assert run_course(seed, LOSSES).violations == []


def without_comparing_lineages(patch: pytest.MonkeyPatch) -> None:
    def by_epochs(claim: Claim, config: DriverConfig, is_there: Callable[[int], bool]) -> Known | None:
        return Known(claim.epoch, claim.lineage) if claim.epoch > config.epoch else None

    def is_ahead(holder: Holder, me: Holder) -> bool:
        return is_ahead_by_both(dataclasses.replace(holder, lineage=0), me)

    is_ahead_by_both = fence._is_ahead
    patch.setattr(claiming, "known_beside", by_epochs)
    patch.setattr(fence, "_is_ahead", is_ahead)
    # It would refuse what the others let through.
    patch.setattr(later_lineages, "later_than", lambda client, place, lineage: [])


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken) for take_out, broken in ((without_comparing_lineages, "runs in lineage"),)
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), LOSSES).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_lineages_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
