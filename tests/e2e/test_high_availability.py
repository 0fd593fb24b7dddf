"""The leader is killed, paused, cut off or asked to go: the other replica leads soon, and applications notice nothing.

One application runs through all of it. Another one, which needs no CPU because its image does not exist, is edited each
time: who leads has to replace its pod. How long anything takes is measured by no test: a busy machine is no failure.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tidegate_testing import own_cluster
from tidegate_testing.operator_pods import OperatorPods, Pair, Tenure, last_exit
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, World

NAMESPACE = "tidegate-e2e-leaders"
RUNNING, EDITED = "running", "edited"
GENEROUS = 300.0


@dataclass(frozen=True)
class Stage:
    """The replicas and both applications."""

    world: World
    operators: OperatorPods
    running: dict[str, Any]
    """The driver pod of the one that runs, as it was at first."""

    def driver(self, app: str) -> dict[str, Any]:
        """Return the driver pod; it must exist."""
        found = self.world.kubectl.get("pod", f"{app}-driver", NAMESPACE)
        assert found is not None, f"{app} has no driver pod"
        return found

    def epoch(self, app: str) -> int:
        """Return the number of launches."""
        return int(self.world.get_app(app, NAMESPACE).get("status", {}).get("epoch", 0))

    def edit(self) -> int:
        """Edit the application without CPU, and return the epoch that follows from it."""
        wanted = self.epoch(EDITED) + 1
        self.world.kubectl.patch("sapp", EDITED, NAMESPACE, {"spec": {"restartNonce": wanted}})
        return wanted

    def await_launch(self, epoch: int) -> None:
        """Wait until the edit was acted on."""

        def launched() -> bool:
            assert self.epoch(EDITED) >= epoch
            return int(self.driver(EDITED)["metadata"]["labels"]["tidegate.dev/epoch"]) >= epoch

        wait_for(f"the driver pod of epoch {epoch}", launched, GENEROUS)

    def assert_nothing_was_noticed(self) -> None:
        """The running application has the driver that it had, in the same process."""
        pod = self.driver(RUNNING)
        assert pod["metadata"]["uid"] == self.running["metadata"]["uid"]
        assert [status["restartCount"] for status in pod["status"]["containerStatuses"]] == [0]
        assert self.epoch(RUNNING) == 1


@pytest.fixture(scope="module")
def stage(world: World) -> Iterator[Stage]:
    """Both applications are there; afterwards neither is, and the replicas are as new."""
    cluster = world.environment.cluster
    if cluster is None:
        own_cluster.leave_out("processes and packets of a foreign cluster are not ours to stop")
    operators = OperatorPods(cluster, world.kubectl, OPERATOR_NAMESPACE)
    world.make_namespace(NAMESPACE)
    missing = {"application": {"image": "localhost/no-such-image:1"}}
    try:
        world.kubectl.apply(
            # Whoever runs these tests once more on the same cluster finds no state of this run.
            world.app(RUNNING, NAMESPACE, main="script:counting.py", spec={"storage": {"deletionPolicy": "Delete"}}),
            world.app(EDITED, NAMESPACE, main="script:counting.py", spec=missing),
        )
        made = Stage(world, operators, {})
        made.await_launch(1)
        running = wait_for("the driver's process", partial(with_process, made), GENEROUS)
        yield Stage(world, operators, running)
    finally:
        try:
            operators.renew()
        finally:
            world.delete_apps(NAMESPACE)


@pytest.fixture
def pair(stage: Stage) -> Pair:
    """One replica leads and the other one stands by, both without a past."""
    stage.operators.renew()
    return stage.operators.settle()


def with_process(stage: Stage) -> dict[str, Any]:
    """Return the running application's pod, once its container runs."""
    pod = stage.driver(RUNNING)
    assert pod["status"]["phase"] == "Running", pod["status"]
    return pod


def held_by_another(stage: Stage, former: Tenure) -> Tenure:
    """Return what the Lease says, once another process holds it than the one that did."""
    now = stage.operators.tenure()
    assert now.holder not in ("", former.holder), now
    return now


@dataclass(frozen=True)
class Takeover:
    """When another process took the Lease, and whose process that is, and whose is not."""

    acquired: float
    successor: dict[str, Any]
    other: dict[str, Any]


def take_over(stage: Stage, pair: Pair, broken: AbstractContextManager[None]) -> Takeover:
    """Break the leader and edit an application meanwhile: its successor acts, and only then is the leader whole."""
    with broken:
        epoch = stage.edit()
        another = partial(held_by_another, stage, pair.tenure)
        after = wait_for("another process to take the Lease", another, GENEROUS, 0.2)
        stage.await_launch(epoch)
        # At least: on a busy machine the successor may have renewed it too late, and another process followed.
        assert after.transitions > pair.tenure.transitions
        # A container that was killed is started again at once, and its new process stands by, too.
        successor, other = (pair.standby, pair.leader) if after.is_of(pair.standby) else (pair.leader, pair.standby)
        assert acted(stage, successor, since=after.acquired), "the audit log knows the replicas by addresses"
        # Something for the old leader to do, when it comes back.
        epoch = stage.edit()
    stage.await_launch(epoch)
    return Takeover(after.acquired, successor, other)


def acted(stage: Stage, pod: dict[str, Any], since: float) -> list[str]:
    """Return what a replica changed, the Lease left out."""
    return [write.what for write in stage.operators.writes(pod, since) if not write.lease]


def await_end(stage: Stage, pod: dict[str, Any]) -> int:
    """Wait until the process that led has ended, and return its exit code."""

    def ended() -> list[int]:
        code = last_exit(stage.operators.pod(pod["metadata"]["name"]))
        return [] if code is None else [code]

    return wait_for("the old leader's end", ended, GENEROUS)[0]


@pytest.mark.long
def test_a_leader_that_is_killed_is_followed_by_another_process(stage: Stage, pair: Pair) -> None:
    seen = take_over(stage, pair, stage.operators.killed(pair.leader))
    assert await_end(stage, pair.leader) == 137
    assert stage.operators.writes_without_lease(seen.other, lost=seen.acquired) == []
    stage.assert_nothing_was_noticed()


@pytest.mark.long
def test_a_leader_that_was_paused_beyond_its_lease_does_nothing_when_it_goes_on(stage: Stage, pair: Pair) -> None:
    seen = take_over(stage, pair, stage.operators.paused(pair.leader))
    assert seen.successor is pair.standby
    assert await_end(stage, pair.leader) == 1
    assert stage.operators.writes_without_lease(pair.leader, lost=seen.acquired) == []
    stage.assert_nothing_was_noticed()


@pytest.mark.long
def test_a_leader_that_is_cut_off_from_the_api_server_ends_and_the_standby_acts(stage: Stage, pair: Pair) -> None:
    seen = take_over(stage, pair, stage.operators.cut_off(pair.leader))
    assert seen.successor is pair.standby
    assert await_end(stage, pair.leader) == 1
    assert stage.operators.writes_without_lease(pair.leader, lost=seen.acquired) == []
    stage.assert_nothing_was_noticed()


@pytest.mark.long
def test_a_leader_that_is_asked_to_go_hands_over_before_its_lease_expires(stage: Stage, pair: Pair) -> None:
    with stage.operators.watch_lease() as lease:
        stage.world.kubectl.delete("pod", pair.leader["metadata"]["name"], OPERATOR_NAMESPACE)
        epoch = stage.edit()
        # Nobody has to wait until it expires: it is free before somebody takes it.
        lease.until("the leader to release the Lease", lambda version: not version["spec"].get("holderIdentity"))
    # Whoever asks first: the standby, or the pod that follows the leader's.
    wait_for("another process to take the Lease", partial(held_by_another, stage, pair.tenure), GENEROUS, 0.2)
    stage.await_launch(epoch)
    released = max(write.time for write in stage.operators.writes(pair.leader) if write.lease)
    assert acted(stage, pair.leader, since=released) == []
    stage.assert_nothing_was_noticed()


@pytest.mark.long
def test_the_application_has_run_through_all_of_it(stage: Stage) -> None:
    stage.operators.settle()

    def commits() -> bool:
        status = stage.world.status(RUNNING, NAMESPACE)
        assert status.get("phase") == "Running", status
        return bool(status.get("batch", -1) >= 0)

    wait_for("batches of the running application", commits, 600, 1)
    stage.assert_nothing_was_noticed()
    assert stage.world.get_app(RUNNING, NAMESPACE)["status"].get("restarts") is None
