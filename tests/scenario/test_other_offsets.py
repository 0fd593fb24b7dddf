"""Whatever happens meanwhile, an application goes on from other offsets once, with its state, and only if asked to.

The schedules of ``test_schedules.py`` have other misfortunes; here edits of offsets follow one another.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.events import choose_among, losses, offsets, people
from tests.scenario.schedule import Result, misfortune, run_course
from tidegate.api.streaming_app import StableSpec, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.upgrade import record, rollback, start_upgrade, starting_offsets
from tidegate.pods.records.record import PodRecord
from tidegate_testing.mistakes import Course, planted

SEEDS = range(40)
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""
ELSEWHERE = misfortune(
    choose_among(
        people.create_app,
        offsets.create_with_offsets,
        offsets.start_elsewhere,
        offsets.start_elsewhere,
        offsets.start_elsewhere,
        offsets.edit_offsets,
        offsets.edit_offsets,
        offsets.restart,
        people.edit_args,
        people.break_next_version,
        people.ask_for_rollback,
        people.repartition_stable,
        people.start_over,
        people.suspend_or_resume,
        losses.back_up,
        losses.lose_status,
        losses.restore_status,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_application_goes_on_elsewhere_once_with_its_state_and_comes_to_rest(seed: int) -> None:
    assert run_course(seed, ELSEWHERE).violations == []


@pytest.mark.usefixtures("quiet_log")
def test_it_happens() -> None:
    results: list[Result] = [run_course(seed, ELSEWHERE) for seed in range(20)]
    assert sum(result.facts["went on from other offsets"] for result in results) > 5


def with_a_rejected_number_for_the_stable_version(patch: pytest.MonkeyPatch) -> None:
    def under_test_alone(o: Observation, upgrade: UpgradeStatus) -> bool:
        return upgrade.phase in record.UNDER_TEST and upgrade.to_spec_hash == o.spec_hash

    def of_version_under_test(driver: PodRecord, upgrade: UpgradeStatus, stable: StableSpec) -> bool:
        return driver.spec_hash == upgrade.to_spec_hash

    # Of these two, each makes good what the other one does: no rollback comes to its end without both.
    patch.setattr(start_upgrade, "_is_about_such_upgrade", under_test_alone)
    patch.setattr(rollback, "_is_of_version_left", of_version_under_test)


def with_offsets_of_another_application(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starting_offsets, "are_older", lambda app: False)


def with_offsets_for_any_lineage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starting_offsets, "_names_present_state", lambda o, asked: True)


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken)
    for take_out, broken in (
        (with_a_rejected_number_for_the_stable_version, "RollingBack"),
        (with_offsets_of_another_application, "nobody has asked for that"),
        (with_offsets_for_any_lineage, "and another one did"),
    )
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), ELSEWHERE).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_offsets_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
