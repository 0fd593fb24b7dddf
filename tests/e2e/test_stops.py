"""Five ways to stop a driver whose script has SIGTERM for itself: each ends at a batch boundary, the script is told.

Of all the ways only the first comes from the operator; the others reach the container's first process.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, PREFIX, World

NAME, NAMESPACE = "stopped", f"{PREFIX}-stops"
GENEROUS = 300.0


@dataclass(frozen=True)
class Stage:
    """An application that runs."""

    world: World

    def epoch(self) -> int:
        """Return the epoch once it has committed batches in it."""

        def runs() -> int:
            status = self.world.status(NAME, NAMESPACE)
            assert status.get("phase") == "Running", status
            assert status.get("batch", -1) >= 0, status
            return int(status["epoch"])

        return wait_for("batches", runs, GENEROUS)

    def log_of(self, epoch: int) -> str:
        """Return what the driver of an epoch left in the storage at its end, empty before."""
        keys = [key for key in self.world.keys(NAME, NAMESPACE) if key.endswith(f"-e{epoch}/driver.log")]
        return "".join(map(self.world.read, keys))

    def suspend(self) -> None:
        """Ask the operator for a stop."""
        self.world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": {"suspend": True}})
        wait_for("Suspended", lambda: self._phase() == "Suspended", GENEROUS)
        self.world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": {"suspend": False}})

    def delete(self) -> None:
        """Delete the pod, as anybody may."""
        self.world.kubectl.run("delete", "pod", f"{NAME}-driver", "-n", NAMESPACE, "--wait=false")

    def evict(self) -> None:
        """Have the API server evict the pod."""
        self.world.evict(f"{NAME}-driver", NAMESPACE)

    def drain(self) -> None:
        """Drain the node of this application's pods."""
        pod = self.world.kubectl.get("pod", f"{NAME}-driver", NAMESPACE)
        assert pod is not None
        node = pod["spec"]["nodeName"]
        options = ("--delete-emptydir-data", "--ignore-daemonsets", "--timeout=200s")
        try:
            self.world.kubectl.run("drain", node, f"--pod-selector=tidegate.dev/app={NAME}", *options, timeout=GENEROUS)
        finally:
            self.world.kubectl.run("uncordon", node)

    def delete_without_operator(self) -> None:
        """Delete the pod while no operator runs."""
        kubectl = self.world.kubectl
        replicas = len(kubectl.list("pods", OPERATOR_NAMESPACE, SELECTOR))
        (deployment,) = kubectl.run(
            "get", "deployments", "-n", OPERATOR_NAMESPACE, "-l", SELECTOR, "-o", "name"
        ).split()
        scale = ("scale", deployment, "-n", OPERATOR_NAMESPACE)
        try:
            kubectl.run(*scale, "--replicas=0")
            wait_for("no operator", lambda: not kubectl.list("pods", OPERATOR_NAMESPACE, SELECTOR), GENEROUS)
            kubectl.run("delete", "pod", f"{NAME}-driver", "-n", NAMESPACE, timeout=GENEROUS)
        finally:
            kubectl.run(*scale, f"--replicas={replicas}")

    def _phase(self) -> str:
        return str(self.world.get_app(NAME, NAMESPACE).get("status", {}).get("phase"))


DRAINED = "drained from its node"
WAYS: dict[str, Callable[[Stage], None]] = {
    "suspended by its spec": Stage.suspend,
    "deleted with kubectl": Stage.delete,
    "evicted": Stage.evict,
    DRAINED: Stage.drain,
    "deleted while no operator runs": Stage.delete_without_operator,
}


@pytest.fixture(scope="module")
def stage(world: World) -> Iterator[Stage]:
    world.make_namespace(NAMESPACE)
    world.kubectl.apply(world.app(NAME, NAMESPACE, main="script:asking_asyncio.py"))
    yield Stage(world)
    world.delete_apps(NAMESPACE)


@pytest.mark.long  # tests/integration/spark_runtime/test_script_ends.py has it for one process, without a container
@pytest.mark.parametrize("way", list(WAYS))
def test_a_driver_ends_at_a_batch_boundary_and_its_script_is_told_whichever_way_it_is_stopped(
    stage: Stage, way: str
) -> None:
    epoch = stage.epoch()
    WAYS[way](stage)
    log = wait_for("the driver's log", lambda: stage.log_of(epoch), GENEROUS)
    # A drain takes the executors together with the driver, and the batch that they were in with them.
    boundary = "Stopped at a batch boundary: 'counts' after batch"
    ends = [boundary, "Stopped inside a batch of 'counts', for which no executor was left; the next start"]
    assert any(end in log for end in ends[: 2 if way == DRAINED else 1]), log[-3000:]
    assert "end: Stopped: " in log, log[-3000:]
    assert "told, and the query is active: False" in log, log[-3000:]
    wait_for("the next launch", lambda: stage.epoch() > epoch, GENEROUS)
