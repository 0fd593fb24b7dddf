"""What the simulation holds of lineages: what may never happen is noticed, and what is promised to nobody is not."""

import time
from dataclasses import replace

import pytest

from tests.scenario.api_server import ApiServer
from tests.scenario.invariants import Invariants, Wishes
from tidegate_spark.contract.protocol import RestartSettings
from tidegate_spark.storage.claim.fence import Holder

PLACE = "streams/apps/shop/billing"
OLD = Holder("app", 1, 1, "pod-1", "pod-1/0")
NEW = Holder("app", 2, 2, "pod-2", "pod-2/0")


class History:
    """What processes do in one storage, and what was said of it."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.check = Invariants(
            ApiServer(time.time, {"shop"}),
            self.violations.append,
            action=lambda: "",
            decided_at=lambda namespace, name: 0,
            count=lambda what: None,
            late=lambda: False,
        )
        self.check.wishes["app"] = Wishes()

    def takes(self, holder: Holder, after: int = 0) -> None:
        """Have a process take the fence; its launch was to leave a lineage for its own."""
        self.check.taken(PLACE, holder, RestartSettings())
        if after:
            self.check.opened_after[holder.uid, holder.lineage] = {after}

    def begins(self, holder: Holder) -> None:
        self.check.begun(PLACE, holder)

    def ends(self, holder: Holder, batch: int) -> None:
        self.check.committed(PLACE, holder, batch)

    def runs(self, holder: Holder, batch: int) -> None:
        self.begins(holder)
        self.ends(holder, batch)

    def leaves_in_the_middle_of(self, batch: int) -> None:
        """Have the old lineage left while its batch runs, which ends after the first one of the new lineage."""
        self.takes(OLD)
        for earlier in range(batch):
            self.runs(OLD, earlier)
        self.begins(OLD)
        self.takes(NEW, after=1)
        self.runs(NEW, 0)
        self.ends(OLD, batch)


@pytest.fixture
def history() -> History:
    return History()


@pytest.mark.parametrize("first", [0, 1])
def test_a_batch_is_ended_in_the_lineage_that_was_left_while_it_ran(history: History, first: int) -> None:
    history.leaves_in_the_middle_of(first)
    history.runs(NEW, 1)
    assert history.violations == []


def test_no_other_one_is_begun_there(history: History) -> None:
    history.leaves_in_the_middle_of(1)
    history.runs(OLD, 2)
    assert "had the fence" in history.violations[0]
    assert "runs in lineage 1" in history.violations[1]


def test_whoever_has_the_fence_does_not_end_a_batch_in_a_lineage_that_was_left(history: History) -> None:
    back = replace(OLD, epoch=3, pod_uid="pod-3", process="pod-3/0")
    history.takes(OLD)
    history.runs(OLD, 0)
    history.takes(NEW, after=1)
    history.begins(NEW)
    history.takes(back)
    history.begins(back)
    history.ends(NEW, 0)
    history.ends(back, 1)
    assert "runs in lineage 1" in history.violations[0]


def test_what_was_ended_there_is_not_where_the_application_runs(history: History) -> None:
    other = replace(NEW, epoch=3, lineage=3, pod_uid="pod-3", process="pod-3/0")
    history.leaves_in_the_middle_of(1)
    history.takes(other, after=1)
    history.runs(other, 0)
    assert history.violations == [f"lineage 3 of {PLACE} does not follow 2, and the application ran there"]


def test_a_batch_that_ends_in_a_storage_that_was_emptied_says_nothing_of_who_comes_next(history: History) -> None:
    history.takes(NEW)
    history.begins(NEW)
    history.check.emptied(PLACE)
    history.ends(NEW, 0)
    history.check.wishes["next"] = Wishes()
    following = replace(OLD, uid="next", pod_uid="pod-3", process="pod-3/0")
    history.takes(following)
    history.runs(following, 0)
    assert history.violations == []


def test_state_that_is_repartitioned_once_more_for_the_same_wish_is_noticed(history: History) -> None:
    third = replace(NEW, epoch=3, lineage=3)
    history.check.repartitioned(PLACE, NEW, 1, 8, 4)
    history.check.repartitioned(PLACE, third, 1, 8, 4)  # another attempt, of what was before
    assert history.violations == []
    history.check.repartitioned(PLACE, third, 2, 9, 4)
    assert history.violations == [f"the state of lineage 2 of {PLACE} is repartitioned twice, into 4 partitions"]


def test_a_repartition_into_a_lineage_in_which_the_application_ran_is_noticed(history: History) -> None:
    history.takes(NEW)
    history.runs(NEW, 0)
    history.check.repartitioned(PLACE, NEW, 1, 8, 4)
    assert "into lineage 2, in which the application ran" in history.violations[0]
