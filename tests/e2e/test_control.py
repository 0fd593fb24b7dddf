"""Messages are sent while driver, executors and operator are killed: each is in force once, in order, in one batch.

What was in force is told by every task of every batch, also of those that were run again; what came of a message, by
its resource.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate_testing.kills import kill_driver, kill_executors, kill_jvm, kill_operators
from tidegate_testing.kubectl import KubectlError
from tidegate_testing.listening import (
    QUERIES,
    SCRIPT,
    Output,
    Reported,
    assert_each_was_in_force_once_in_order_and_in_one_batch,
    have_begun,
)
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-control"
APP = "listening"
BETWEEN = 3
"""Messages sent before each fault, and after it."""
EXECUTORS = f"tidegate.dev/app={APP},tidegate.dev/role=executor"
SETTLED_SECONDS = 600.0


@dataclass
class Listening:
    """The application, and what was sent to it."""

    world: World
    output: Output
    sent: list[str] = field(default_factory=list)

    def send(self, name: str, kind: str, payload: Any) -> None:
        """Send a message."""
        spec = {"appRef": {"name": APP}, "type": kind, "payload": payload}
        metadata = {"name": name, "namespace": NAMESPACE}
        self.world.kubectl.apply(
            {"apiVersion": "tidegate.dev/v1alpha1", "kind": "ControlMessage", "metadata": metadata, "spec": spec}
        )

    def send_some(self, number: int) -> None:
        """Send settings, each of which is there for good."""
        for _ in range(number):
            name = f"m{len(self.sent):03}"
            self.send(name, "reload-config", {"sent": {name: 1}})
            self.sent.append(name)

    def status(self, name: str) -> dict[str, Any]:
        """Return what is known of a message."""
        found = self.world.kubectl.get("ctl", name, NAMESPACE)
        assert found is not None, f"{name} is gone"
        status: dict[str, Any] = found.get("status", {})
        return status

    def await_phase(self, names: list[str], phase: str, timeout: float = SETTLED_SECONDS) -> dict[str, dict[str, Any]]:
        """Return what is known of all messages once these are in a phase."""

        def probe() -> dict[str, dict[str, Any]]:
            self.world.status(APP, NAMESPACE)
            listed = self.world.kubectl.list("ctl", NAMESPACE)
            found = {each["metadata"]["name"]: each.get("status", {}) for each in listed}
            others = {name: found[name].get("phase") for name in names if found[name].get("phase") != phase}
            assert not others, f"not {phase}: {others}"
            return found

        return wait_for(f"{len(names)} messages to be {phase}", probe, timeout, 1.0)

    # --- faults -------------------------------------------------------------------------------------------------------

    def kill_the_jvm(self) -> None:
        """Kill Spark in the driver's container, which the kubelet starts again."""
        kill_jvm(self.world, NAMESPACE, APP)

    def kill_executors(self) -> None:
        """Take the pods away at once."""
        kill_executors(self.world, NAMESPACE, APP)

    def kill_the_driver(self) -> None:
        """Take its pod away at once."""
        kill_driver(self.world, NAMESPACE, APP)

    def kill_operators(self) -> None:
        """Take the leader and the standby away at once."""
        kill_operators(self.world)

    def await_debug_lines(self, of_others_than: set[str]) -> set[str]:
        """Wait until an executor that is none of those named has said something at DEBUG; return the names of such."""

        def probe() -> set[str]:
            found = set()
            for pod in self.world.kubectl.list("pods", NAMESPACE, EXECUTORS):
                name = pod["metadata"]["name"]
                if name not in of_others_than and self.says_debug(name):
                    found.add(name)
            assert found, "no executor says anything at DEBUG"
            return found

        return wait_for("an executor's lines at DEBUG", probe, timeout=SETTLED_SECONDS, interval=2.0)

    def says_debug(self, pod: str) -> bool:
        """Return whether a pod has said something at DEBUG."""
        try:
            return " DEBUG " in self.world.kubectl.run("logs", pod, "-n", NAMESPACE, "--tail=2000")
        except KubectlError:
            # It is gone, or has not begun.
            return False


@pytest.fixture(scope="module")
def listening(world: World) -> Iterator[Listening]:
    """The application runs, and each of its queries has committed a batch."""
    world.make_namespace(NAMESPACE)
    # Whoever runs this once more on the same cluster finds nothing of this run.
    output = Output(world, f"output/{NAMESPACE}/{time.time():.0f}")
    spec = {"storage": {"deletionPolicy": "Delete"}}
    world.kubectl.apply(world.app(APP, NAMESPACE, main=SCRIPT, args=[output.target], spec=spec))
    made = Listening(world, output)

    try:
        wait_for("both queries to commit", lambda: have_begun(world, APP, NAMESPACE), timeout=600, interval=1.0)
        yield made
    finally:
        world.kubectl.run("delete", "ctl", "--all", "-n", NAMESPACE, "--wait=false")
        world.delete_apps(NAMESPACE)


Fault = Callable[[Listening], None]
EXECUTORS_GO, OPERATORS_GO = Listening.kill_executors, Listening.kill_operators
JVM_GOES, DRIVER_GOES = Listening.kill_the_jvm, Listening.kill_the_driver


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([(EXECUTORS_GO, OPERATORS_GO, JVM_GOES)], id="together"),
        pytest.param(
            [(JVM_GOES,), (EXECUTORS_GO,), (OPERATORS_GO,), (DRIVER_GOES,)], id="one-by-one", marks=pytest.mark.long
        ),
    ],
)
def test_each_message_is_in_force_once_in_order_and_in_one_batch_whoever_is_killed_meanwhile(
    listening: Listening, faults: list[tuple[Fault, ...]]
) -> None:
    for together in faults:
        print(f"{len(listening.sent)} messages were sent before {[fault.__name__ for fault in together]}")
        listening.send_some(BETWEEN)
        for fault in together:
            fault(listening)
        listening.send_some(BETWEEN)
        # So the next fault meets an application that runs, and finds something under way.
        listening.await_phase(listening.sent[-1:], "Applied")

    reported = listening.await_phase(listening.sent, "Applied")
    batches = {name: {query: batch_of(reported[name], query) for query in QUERIES} for name in listening.sent}
    each = {name: Reported(reported[name]["sequence"], batches[name]) for name in listening.sent}
    assert_each_was_in_force_once_in_order_and_in_one_batch(listening.output, each)


@pytest.mark.long
def test_a_dump_is_of_the_batch_of_its_message(listening: Listening) -> None:
    """And its address is told; what was taken for it can be seen as any snapshot."""
    listening.send(
        "dump", "dump-state", {"format": "CSV", "resources": {"requests": {"cpu": "100m", "memory": "1500Mi"}}}
    )
    status = listening.await_phase(["dump"], "Applied")["dump"]
    snapshot = listening.world.kubectl.get("snap", status["results"]["streamSnapshot"], NAMESPACE)
    assert snapshot is not None
    taken = {query["name"]: query["batchId"] for query in snapshot["status"]["queries"]}
    assert taken == {query: batch_of(status, query) for query in QUERIES}
    key = status["results"]["uri"].removeprefix(f"s3://{listening.world.bucket}/")
    manifest = json.loads(listening.world.read(key))
    assert manifest["queries"]["tasks"]["batch"] == taken["tasks"]


@pytest.mark.long
def test_executors_have_the_level_that_was_sent(listening: Listening) -> None:
    """Those that run, and those that start later."""
    executors = {each["metadata"]["name"] for each in listening.world.kubectl.list("pods", NAMESPACE, EXECUTORS)}
    assert executors
    assert not any(listening.says_debug(name) for name in executors)
    listening.send("level", "set-log-level", {"level": "DEBUG"})
    listening.await_phase(["level"], "Applied")
    before = listening.await_debug_lines(of_others_than=set())
    assert before & executors
    listening.kill_executors()
    assert listening.await_debug_lines(of_others_than=before | executors)


def batch_of(status: dict[str, Any], query: str) -> int:
    """Return the batch of a query in which a message took effect, as its resource tells."""
    (batch,) = [each["batchId"] for each in status["queries"] if each["name"] == query]
    return int(batch)
