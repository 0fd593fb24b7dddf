"""A driver whose node is lost, and one whose node is drained: on a second node, which the tests add and take away.

The lost node is cut off from the control plane, and its pods go on as if nothing was: the old driver and its executors
commit batches all the while, until the fence stops them.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from devcluster import node, second_node
from devcluster.cluster import Cluster
from tidegate_testing import own_cluster
from tidegate_testing.commit_log import CommitLog, CommitWatch
from tidegate_testing.pod_processes import find, runs_module
from tidegate_testing.waiting import CannotComeError, wait_for
from tidegate_testing.world import World

NAMESPACE, NAME, QUERY = "tidegate-e2e-nodes", "moving", "counting"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
GRACE_SECONDS = 25
DRAIN_GRACE_SECONDS = 400
"""A drain takes the executors, too, and the running batch waits for new ones."""
EVICTED_AFTER_SECONDS = 2
"""Of being unreachable; five minutes unless a pod says otherwise."""
START_SECONDS = 600.0


@dataclass(frozen=True)
class Stage:
    """The application, and what its checkpoint tells."""

    world: World
    cluster: Cluster
    log: CommitLog

    def driver(self) -> dict[str, Any]:
        """Return the driver pod; it must exist."""
        found = self.world.kubectl.get("pod", f"{NAME}-driver", NAMESPACE)
        assert found is not None, "there is no driver pod"
        return found

    def status(self) -> dict[str, Any]:
        """Return the application's status."""
        found: dict[str, Any] = self.world.get_app(NAME, NAMESPACE).get("status", {})
        return found

    def grant(self, seconds: int) -> None:
        """Give the next driver another grace period."""
        change = {"spec": {"driver": {"stopGracePeriodSeconds": seconds}}}
        self.world.kubectl.patch("sapp", NAME, NAMESPACE, change)

    def await_driver(self, epoch: int, *nodes: str) -> dict[str, Any]:
        """Wait until the driver of an epoch runs on one of the nodes, and return its pod."""

        def running() -> dict[str, Any]:
            pod = self.driver()
            assert self.status().get("epoch") == epoch, self.status()
            assert pod["metadata"]["labels"]["tidegate.dev/epoch"] == str(epoch)
            assert pod["spec"].get("nodeName") in nodes, pod["spec"].get("nodeName")
            assert pod["status"]["phase"] == "Running", pod["status"]
            return pod

        return wait_for(f"the driver of epoch {epoch} on {nodes}", running, START_SECONDS)


def movable() -> dict[str, Any]:
    """Return a pod template that prefers the second node and does not wait for a lost one."""
    wish = {"key": "kubernetes.io/hostname", "operator": "In", "values": [second_node.NAME]}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [wish]}}]
    patience = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": EVICTED_AFTER_SECONDS,
        }
        for key in ("unreachable", "not-ready")
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {"affinity": affinity, "tolerations": patience}


def application(world: World) -> dict[str, Any]:
    # Whoever runs these tests once more on the same cluster finds no state of this run.
    app = world.app(NAME, NAMESPACE, main="script:counting.py", spec={"storage": {"deletionPolicy": "Delete"}})
    driver, executor = app["spec"]["driver"], app["spec"]["executor"]
    driver["podTemplate"]["spec"] |= movable()
    driver["stopGracePeriodSeconds"] = GRACE_SECONDS
    executor["podTemplate"] = {"spec": movable()}
    return app


@pytest.fixture(scope="module")
def stage(world: World) -> Iterator[Stage]:
    """The application runs on the second node; afterwards there is neither."""
    cluster = world.environment.cluster
    if cluster is None:
        own_cluster.leave_out("nodes of a foreign cluster are not ours to lose")
    data = cluster.folder / "s3" / "data" / world.bucket / "apps" / NAMESPACE / NAME
    made, began = Stage(world, cluster, CommitLog(data / "lineages" / "1" / QUERY)), time.time()
    try:
        second_node.up(cluster)
        world.make_namespace(NAMESPACE)
        world.kubectl.apply(application(world))
        made.await_driver(1, second_node.NAME)
        await_commit(made, began)
        yield made
    finally:
        try:
            world.delete_apps(NAMESPACE)
        finally:
            second_node.remove(cluster)


@pytest.fixture
def lost(stage: Stage) -> Iterator[float]:
    """The second node is lost, since the time that this returns; afterwards it is back."""
    second_node.lose(stage.cluster)
    try:
        yield time.time()
    finally:
        second_node.find(stage.cluster)


@pytest.fixture
def patient(stage: Stage) -> dict[str, Any]:
    """The driver pod, which has the time that a drain needs."""
    pod, epoch = stage.driver(), stage.status()["epoch"]
    if pod["spec"]["terminationGracePeriodSeconds"] == DRAIN_GRACE_SECONDS:
        return pod
    stage.grant(DRAIN_GRACE_SECONDS)
    stage.world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": {"restartNonce": epoch}})
    return stage.await_driver(epoch + 1, *node.NAMES)


def await_commit(stage: Stage, after: float) -> int:
    """Wait for the first commit after a time, and return its batch."""
    return stage.log.await_commit_after(after, START_SECONDS).number


def ends_before(stage: Stage, pod: dict[str, Any]) -> tuple[int, int]:
    """Return the last batch that was begun before a driver pod, and the last one that was committed before it."""
    # Told in whole seconds; a driver starts a JVM before it begins a batch.
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).timestamp() + 1.0
    planned, committed = (
        max(batch for batch, at in batches.items() if at < made)
        for batches in (stage.log.planned(), stage.log.committed())
    )
    return planned, committed


def taint_of(stage: Stage) -> set[str]:
    """Return the keys of the taints that the second node has."""
    found = stage.world.kubectl.get("node", second_node.NAME, NAMESPACE)
    assert found is not None
    return {taint["key"] for taint in found["spec"].get("taints", [])}


def await_what_is_said(stage: Stage, epoch: int, since: float) -> dict[str, Any]:
    """Wait until the status says what has to be done, and return the condition that does; it stays until it is done.

    Before that nobody knows whether the driver stops at a batch boundary, and so nothing says it does. What was said
    meanwhile is read in the events: the status may have gone on before anybody reads it.
    """

    def said() -> dict[str, Any]:
        app = stage.world.get_app(NAME, NAMESPACE)
        if app["status"]["epoch"] != epoch:
            raise CannotComeError(f"another driver was launched: {app['status']}")
        condition = stage.world.kubectl.condition(app, "Ready")
        assert condition.get("reason") == "DriverNotGone", condition
        return condition

    condition = wait_for("the application to say that its node does not answer", said, 600, 1)
    # The events come in their order: once the last one is there, none that was before it is missing.
    stage.world.await_events(NAME, NAMESPACE, "DriverNotGone")
    events = events_since(stage, since)
    assert "has to leave node" in events.get("NodeTainted", ""), events
    assert "DriverStopping" not in events
    return condition


def events_since(stage: Stage, since: float) -> dict[str, str]:
    """Return the messages of the application's events since a time, by reason; times are told in whole seconds."""
    events = stage.world.kubectl.list("events", NAMESPACE, f"tidegate.dev/app={NAME}")
    times = [(datetime.fromisoformat(event["lastTimestamp"]).timestamp(), event) for event in events]
    return {event["reason"]: event["message"] for at, event in times if at >= int(since)}


def written_log(stage: Stage, epoch: int) -> str:
    """Return the last lines of the driver of an epoch, which it puts into the storage at its end; empty before."""
    keys = [key for key in stage.world.keys(NAME, NAMESPACE) if key.endswith(f"-e{epoch}/driver.log")]
    return "".join(map(stage.world.read, keys))


def test_a_driver_on_a_lost_node_is_replaced_once_that_is_out_of_service_and_ends_by_the_fence(
    stage: Stage, lost: float
) -> None:
    old = stage.driver()
    epoch = stage.status()["epoch"]
    process = find(stage.cluster, old, "driver", runs_module("tidegate_spark"))
    with CommitWatch(stage.log) as watch:
        said = await_what_is_said(stage, epoch, lost)
        assert [word for word in (second_node.NAME, "out-of-service") if word not in said["message"]] == []
        assert "node.kubernetes.io/unreachable" in taint_of(stage)
        # Nothing was launched beside it, and with reason: it lives, and writes.
        waiting = stage.driver()
        assert waiting["metadata"]["uid"] == old["metadata"]["uid"]
        assert "deletionTimestamp" in waiting["metadata"]
        assert stage.status()["epoch"] == epoch
        await_commit(stage, lost + 30)
        assert process.identity.alive()

        stage.grant(DRAIN_GRACE_SECONDS)
        stage.world.kubectl.run("taint", "node", second_node.NAME, OUT_OF_SERVICE)
        stage.await_driver(epoch + 1, node.NAME)
        wait_for("the old driver's end", lambda: not process.identity.alive(), START_SECONDS)
        batch = await_commit(stage, time.time())
        assert watch.rewritten == set()
        numbers = sorted(commit.number for commit in watch.commits())
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert batch in numbers
    fence = json.loads(stage.world.read(f"apps/{NAMESPACE}/{NAME}/fence.json"))
    assert fence["epoch"] == stage.status()["epoch"] == epoch + 1
    startup_termination = written_log(stage, epoch)
    assert "stopping: Fenced" in startup_termination, startup_termination[-3000:]


@pytest.mark.long  # the boundary stop by itself is in test_life_of_an_application.py, and a node's end is above
def test_a_driver_on_a_drained_node_stops_at_a_boundary_and_goes_on_elsewhere(
    stage: Stage, patient: dict[str, Any]
) -> None:
    epoch, here = stage.status()["epoch"], patient["spec"]["nodeName"]
    (there,) = {*node.NAMES} - {here}
    with CommitWatch(stage.log) as watch:
        await_commit(stage, time.time())
        try:
            # What a person types; it uses the Eviction API, and waits until the pods are gone.
            stage.world.kubectl.run(
                *("drain", here, f"--pod-selector=tidegate.dev/app={NAME}", "--delete-emptydir-data", "--timeout=500s"),
                timeout=520,
            )
            ends = ends_before(stage, stage.await_driver(epoch + 1, there))
            batch = await_commit(stage, time.time())
        finally:
            stage.world.kubectl.run("uncordon", here)
        assert watch.rewritten == set()
        numbers = sorted(commit.number for commit in watch.commits())
    assert ends[0] == ends[1]
    assert batch > ends[1]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert "stopping: Stopped" in written_log(stage, epoch)
    reported = {event["reason"] for event in stage.world.kubectl.list("events", NAMESPACE)}
    assert "GracePeriodExceeded" not in reported
