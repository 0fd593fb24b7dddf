"""A pod that somebody made of a driver's manifest, without its owner, is nobody's, and writes beside no driver.

The program in it is ours and so is its configuration: the fence keeps it from what another process has, and to the
operator it is a pod of people's that may write.
"""

from collections.abc import Callable, Collection
from functools import partial

import pytest

from tests.scenario.events import choose_among, operators, people, pods, strangers
from tests.scenario.schedule import misfortune, run_course
from tidegate.pods.records import read_pods
from tidegate.pods.records.pod_owner import Belonging, OwnerReference, belonging
from tidegate_spark.contract.protocol import ROLE_DRIVER
from tidegate_spark.storage.claim import fence
from tidegate_testing.mistakes import Course, Mistake, planted

SEEDS = range(15)
SCHEDULES = 100
"""So many are tried when the recorded one no longer fails."""
COPIED = misfortune(
    choose_among(
        strangers.copy_driver,
        strangers.copy_driver,
        strangers.copy_driver,
        people.edit_args,
        people.suspend_or_resume,
        pods.crash_driver,
        pods.delete_pod,
        operators.crash_operator,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_of_a_driver_is_left_alone_and_no_two_write_at_once(seed: int) -> None:
    assert run_course(seed, COPIED).violations == []


def test_drivers_are_copied_in_these_schedules() -> None:
    assert sum(run_course(seed, COPIED).facts["copied a driver's pod"] for seed in range(4)) > 3


def with_pods_that_are_whose_their_labels_say(patch: pytest.MonkeyPatch) -> None:
    def by_label(name: str, owners: Collection[OwnerReference], app: str) -> Belonging:
        whose = belonging(name, owners, app)
        return whose if whose.role or not app else Belonging(app, ROLE_DRIVER)

    patch.setattr(read_pods, "belonging", by_label)


def with_a_fence_for_each_epoch_and_not_for_each_pod(patch: pytest.MonkeyPatch) -> None:
    Mistake(fence, "_is_ahead", "return holder.pod_uid != me.pod_uid", "return False").plant(patch)


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken)
    for take_out, broken in (
        (with_pods_that_are_whose_their_labels_say, "which only has its labels"),
        (with_a_fence_for_each_epoch_and_not_for_each_pod, "in two pods"),
    )
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), COPIED).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_copied_drivers_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
