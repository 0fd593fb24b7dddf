"""Ten applications go on, and the operator's pods stay as they are, whatever somebody stores in another namespace.

What runs: three of the ten have a driver and an executor of Spark that commit batches all the while. The other seven
have a driver pod that waits for an image that is nowhere: a node of two cores has no room for twenty JVMs, and to the
operator an application that waits is one to reconcile like any other. How long it takes to be reconciled is measured by
``make bench NAME=hostile``, and asserted by no test.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tidegate_testing import own_cluster
from tidegate_testing.hostile_routes import store_corpus, store_routes
from tidegate_testing.memory import in_bytes, peak_bytes
from tidegate_testing.operator_pods import OperatorPods, Pair
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, PREFIX, World

NAMESPACE, HOSTILE = f"{PREFIX}-ten", f"{PREFIX}-hostile"
RUNNING = [f"running-{number}" for number in range(3)]
WAITING = [f"waiting-{number}" for number in range(7)]
GENEROUS = 600.0


@dataclass(frozen=True)
class Stage:
    """The ten applications, the namespace of somebody who means harm, and the replicas."""

    world: World
    operators: OperatorPods

    # --- the ten ------------------------------------------------------------------------------------------------------

    def batch(self, name: str) -> int:
        """Return the last batch that an application is known to have committed."""
        return int(self.world.status(name, NAMESPACE).get("batch", -1))

    def await_batch(self, name: str, above: int) -> None:
        """Wait until a later batch than this one was committed."""
        wait_for(f"a batch of {name} above {above}", lambda: self.batch(name) > above, GENEROUS, 2)

    def await_driver(self, name: str, epoch: int) -> None:
        """Wait until an application has the driver pod of this launch."""

        def launched() -> bool:
            pod = self.world.kubectl.get("pod", f"{name}-driver", NAMESPACE)
            assert pod is not None, f"{name} has no driver pod"
            return int(pod["metadata"]["labels"]["tidegate.dev/epoch"]) == epoch

        wait_for(f"the driver pod of {name}, epoch {epoch}", launched, GENEROUS)

    def await_suspension(self, name: str) -> None:
        """Wait until an application rests, and no pod of it is left."""

        def rests() -> bool:
            status = self.world.get_app(name, NAMESPACE).get("status", {})
            assert status.get("phase") == "Suspended", status
            return not self.world.kubectl.list("pods", NAMESPACE, f"tidegate.dev/app={name}")

        wait_for(f"the suspension of {name}", rests, GENEROUS)

    # --- what is hostile ----------------------------------------------------------------------------------------------

    def await_reason(self, kind: str, reason: str) -> None:
        """Wait until the operator has read the hostile objects of a kind and says this of one of them."""
        # No decoder of Python reads them all; kubectl does.
        path = '{range .items[*]}{.status.conditions[?(@.type=="Ready")].reason}{"\\n"}{end}'

        def said() -> bool:
            found = self.world.kubectl.run("get", kind, "-n", HOSTILE, "-o", f"jsonpath={path}").splitlines()
            assert reason in found, found
            return True

        wait_for(f"a {kind} that is {reason}", said, GENEROUS, 2)

    # --- the replicas -------------------------------------------------------------------------------------------------

    def assert_operator_is_as(self, before: Pair) -> None:
        """The same two processes run, and the same one has led all the time."""
        after = self.operators.settle()
        assert identities(after) == identities(before), self.world.operator_crashes()
        held = [(pair.tenure.holder, pair.tenure.transitions) for pair in (before, after)]
        assert held[0] == held[1]

    def assert_memory_is_below_its_limit(self, pair: Pair) -> None:
        """Neither process ever had as much as the chart allows; the one that stands by reads what the leader does."""
        for pod in (pair.leader, pair.standby):
            limit = in_bytes(pod["spec"]["containers"][0]["resources"]["limits"]["memory"])
            process = self.operators.process(pod).identity.pid
            assert peak_bytes(Path(f"/proc/{process}/status").read_text()) < limit, pod["metadata"]["name"]


def identities(pair: Pair) -> list[tuple[str, str, int]]:
    """Return what a restart changes, of the leader and of the standby."""
    found = []
    for pod in (pair.leader, pair.standby):
        (status,) = pod["status"]["containerStatuses"]
        found.append((pod["metadata"]["uid"], status["containerID"], status["restartCount"]))
    return found


def applications(world: World) -> list[dict[str, Any]]:
    # Whoever runs these tests once more on the same cluster finds no state of this run.
    whole = {"storage": {"deletionPolicy": "Delete"}}
    missing = {"application": {"image": "localhost/no-such-image:1"}}
    script = "script:counting.py"
    return [
        *(world.app(name, NAMESPACE, main=script, spec=whole) for name in RUNNING),
        *(world.app(name, NAMESPACE, main=script, spec=missing) for name in WAITING),
    ]


@pytest.fixture
def stage(world: World) -> Iterator[Stage]:
    """The ten are as far as they come, and two replicas without a past look after them."""
    cluster = world.environment.cluster
    if cluster is None:
        own_cluster.leave_out("a foreign cluster is no place for hostile objects")
    made = Stage(world, OperatorPods(cluster, world.kubectl, OPERATOR_NAMESPACE))
    # Not held to a pod security standard, as that of the ten is: hostile pods would be refused before they are read.
    world.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOSTILE}})
    world.make_namespace(NAMESPACE)
    try:
        made.operators.renew()
        world.kubectl.apply(*applications(world))
        for name in RUNNING:
            made.await_batch(name, above=0)
        for name in WAITING:
            made.await_driver(name, epoch=1)
        yield made
    finally:
        world.kubectl.run("delete", "namespace", HOSTILE, "--ignore-not-found", "--wait=false")
        world.delete_apps(NAMESPACE)


@pytest.mark.long  # tests/integration/test_hostile_objects.py has it without pods that run
def test_ten_applications_go_on_and_the_operator_does_not_restart_whatever_is_stored_beside_them(stage: Stage) -> None:
    before = stage.operators.settle()
    batches = {name: stage.batch(name) for name in RUNNING}

    store_what_is_hostile(stage)
    for name, batch in batches.items():
        stage.await_batch(name, above=batch)
    edit_each(stage)
    stage.assert_operator_is_as(before)
    stage.assert_memory_is_below_its_limit(before)

    # What is hostile can be deleted like anything else: its namespace ends once all finalizers are removed.
    stage.world.kubectl.run("delete", "namespace", HOSTILE, f"--timeout={GENEROUS:.0f}s", timeout=GENEROUS + 10)
    stage.assert_operator_is_as(before)


def store_what_is_hostile(stage: Stage) -> None:
    """Store it all, and wait until the operator has read of each kind what is worst."""
    kubectl = stage.world.kubectl
    wait_for("an account for pods", lambda: kubectl.get("serviceaccount", "default", HOSTILE), GENEROUS)
    store_routes(kubectl, HOSTILE)
    store_corpus(kubectl, HOSTILE)
    stage.await_reason("controlmessages", "PayloadTooLarge")
    stage.await_reason("controlmessages", "InvalidPayload")
    stage.await_reason("streamingapps", "InvalidSpec")


def edit_each(stage: Stage) -> None:
    """Edit each of the ten, and see the operator do what follows: drivers are replaced, applications come to rest."""
    for name in WAITING:
        stage.world.kubectl.patch("sapp", name, NAMESPACE, {"spec": {"restartNonce": 1}})
    for name in RUNNING:
        stage.world.kubectl.patch("sapp", name, NAMESPACE, {"spec": {"suspend": True}})
    for name in WAITING:
        stage.await_driver(name, epoch=2)
    for name in RUNNING:
        stage.await_suspension(name)
