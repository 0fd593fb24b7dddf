"""The table of phases is whole: each phase is come to and left, and each line says what it is about. Pure."""

import pytest

from docs import generate_upgrades as page
from tidegate.api.streaming_app import UpgradePhase
from tidegate.app.rules.upgrade.record import OLD_RUNS, UNDER_TEST, UNDER_WAY
from tidegate.app.rules.upgrade.table import LAUNCHES, RECORDED, TABLE, Rule


def ways(phase: UpgradePhase | None) -> set[UpgradePhase]:
    """Return the phases that may follow one, by a step or a launch."""
    by_step = {rule.to for rule in TABLE if phase in rule.phases and rule.to is not None}
    return by_step | {after for before, after in LAUNCHES.items() if before is phase}


@pytest.mark.parametrize("phase", UpgradePhase)
def test_every_phase_is_reached_from_no_record(phase: UpgradePhase) -> None:
    reached: set[UpgradePhase] = set()
    new = ways(None)
    while new - reached:
        reached |= new
        new = set[UpgradePhase]().union(*(ways(each) for each in reached))
    assert phase in reached


@pytest.mark.parametrize("phase", UNDER_WAY)
def test_every_phase_that_is_no_end_has_a_way_to_another(phase: UpgradePhase) -> None:
    assert ways(phase) - {phase} != set()


@pytest.mark.parametrize("phase", [*OLD_RUNS, *UNDER_TEST])
def test_whatever_is_under_way_gives_way_to_a_newer_spec_and_to_the_one_before(phase: UpgradePhase) -> None:
    newer = {rule.when.__name__ for rule in TABLE if phase in rule.phases and rule.to is not None}
    assert newer & {"starts_with_a_copy", "newer_version_on_what_there_is"} != set()
    assert "spec_is_stable_version" in newer


@pytest.mark.parametrize("rule", TABLE, ids=lambda rule: rule.when.__name__)
def test_each_line_says_what_follows_and_only_one_that_leads_somewhere_has_a_reason(rule: Rule) -> None:
    assert (rule.when.__doc__ or "").strip() != ""
    assert rule.reason is None or rule.to is not None


def test_no_case_has_two_lines() -> None:
    cases = [rule.when for rule in TABLE]
    assert len(cases) == len(set(cases))


def test_the_page_has_every_line_and_the_picture_every_phase() -> None:
    assert len(page.table().splitlines()) == len(TABLE) + 2
    assert [phase for phase in RECORDED if phase.value not in page.diagram()] == [UpgradePhase.WITHDRAWN]


def test_a_page_without_a_place_for_them_is_named() -> None:
    with pytest.raises(ValueError, match="no place"):
        page.fill("# Upgrades\n")
