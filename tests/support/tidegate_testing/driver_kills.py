"""The driver of a sample on a real cluster is killed: its JVM alone, or with its whole pod. Does I/O.

All is compared with how it was before, never with a number: what else happened to the driver makes no difference.
"""

from dataclasses import dataclass, field
from typing import Any

from devcluster import tools
from devcluster.demo.application import Application, committed_batches
from devcluster.demo.kubernetes import Kubernetes
from tidegate_testing.waiting import CannotComeError, wait_for
from tidegate_testing.world import World


@dataclass(frozen=True)
class Before:
    """What was so when the driver was killed."""

    epoch: int
    restarts: int
    batch: int


@dataclass
class DriverKills:
    """Kills the driver of one application, and waits for what has to follow."""

    world: World
    app: Application
    namespace: str
    before: Before = field(default=Before(0, 0, -1))

    def status(self) -> dict[str, Any]:
        """Return the application's status."""
        status: dict[str, Any] = self.world.get_app(self.app.name, self.namespace).get("status", {})
        return status

    def newest_batch(self) -> int:
        """Return the newest batch that is committed, -1 if none is."""
        listed = self.world.s3.list_objects_v2(Bucket=self.world.bucket, Prefix=self.app.commits())
        return max(committed_batches(item["Key"] for item in listed.get("Contents", [])), default=-1)

    def kill_the_jvm(self) -> None:
        """SIGKILL: nothing can be finished or told. To be called while data flow."""
        epoch, restarts = self._launches()
        kubectl = self.world.kubectl
        kubernetes = Kubernetes(kubectl.binary, tools.program("helm"), kubectl.kubeconfig)
        kubernetes.kill_process(self.app.driver_pod, self.namespace, "driver", "java")
        self.before = Before(epoch, restarts, self.newest_batch())

    def await_restart(self) -> None:
        """Return when the same pod's driver was started again and has committed a batch, of data sent since then."""

        def restarted() -> bool:
            epoch, restarts = self._launches()
            if epoch != self.before.epoch:
                raise CannotComeError(f"the pod whose JVM was killed, {self.before}, has a successor: epoch {epoch}")
            assert restarts > self.before.restarts, "not started again yet"
            assert self.newest_batch() > self.before.batch, "no batch since it was killed"
            return True

        wait_for("a batch of the driver that was started again in its pod", restarted, timeout=600)
        assert self.status()["lastExit"]["exitCode"] != 0

    def kill_the_pod(self) -> None:
        """Delete the pod with one second of grace: its batch cannot be brought to an end, and the node clears it."""
        self.before = Before(*self._launches(), self.newest_batch())
        self.world.kubectl.run("delete", "pod", self.app.driver_pod, "-n", self.namespace, "--now", "--wait=false")

    def await_next_epoch(self) -> int:
        """Return the epoch of a driver that was launched since then, once it runs."""

        def runs() -> int:
            status = self.status()
            assert status["epoch"] > self.before.epoch, status
            assert status["phase"] == "Running", status
            return int(status["epoch"])

        return wait_for("the driver of a later epoch", runs, timeout=600)

    def _launches(self) -> tuple[int, int]:
        """Return the epoch and the restarts within it."""
        status = self.status()
        return status["epoch"], status.get("driver", {}).get("restarts", 0)
