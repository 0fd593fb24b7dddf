"""Whatever somebody writes on pods, what runs in them goes on, and nobody is told that it does not run.

Labels select what is watched: to whoever watches, a pod that loses them looks as if it were gone.
"""

import dataclasses
import functools
from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.events import choose_among, labels, network, operators, people, pods
from tests.scenario.schedule import misfortune, run_course
from tidegate.app.observation import Observation
from tidegate.app.rules import plan
from tidegate.app.rules.live import suspension
from tidegate.app.rules.verdict import Verdict
from tidegate.cache.index import Index
from tidegate_testing.mistakes import Course, planted

SEEDS = range(25)
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""
LABELS = misfortune(
    choose_among(
        labels.change_labels,
        labels.change_labels,
        labels.change_labels,
        people.suspend_or_resume,
        people.edit_args,
        people.repartition_stable,
        pods.crash_driver,
        pods.delete_pod,
        operators.crash_operator,
        network.break_watches,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_runs_goes_on_and_is_known_to_run_whatever_becomes_of_the_labels_of_its_pods(seed: int) -> None:
    assert run_course(seed, LABELS).violations == []


def test_labels_are_lost_and_restored_in_these_schedules() -> None:
    facts = sum((run_course(seed, LABELS).facts["restored labels"] for seed in range(4)), 0)
    assert facts > 3


def with_pods_that_are_gone_when_a_watch_says_so(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Index, "miss_pod", Index.remove_pod)


def without_labels_restored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan, "restore_labels", lambda o: ())


def with_a_suspension_that_is_not_confirmed(patch: pytest.MonkeyPatch) -> None:
    confirmed = suspension.stay_suspended

    @functools.wraps(confirmed)
    def unconfirmed(o: Observation, now: float) -> Verdict | None:
        verdict = confirmed(o, now)
        return None if verdict is None else dataclasses.replace(verdict, before=())

    patch.setattr(plan, "RULES", tuple(unconfirmed if rule is confirmed else rule for rule in plan.RULES))


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken)
    for take_out, broken in (
        (without_labels_restored, "lost its labels"),
        (with_pods_that_are_gone_when_a_watch_says_so, "lost its labels"),
        (with_a_suspension_that_is_not_confirmed, "is said to be suspended"),
    )
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), LABELS).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_lost_labels_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
