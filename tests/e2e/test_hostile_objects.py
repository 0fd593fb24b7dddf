"""Ten applications that run go on, and the operator's pods stay as they are, whatever somebody stores beside them.

Each of the ten has a driver and an executor of Spark, and a batch every twenty seconds: twenty JVMs that a machine of
two cores has room for, if they do not all start at once. Edits that no driver notices are made alone, while thousands
of hostile objects are being stored, and beside them. That each edit is acknowledged is asserted; how soon is printed,
as a table and as a line of JSON, because a busy machine is no failure. ``make bench NAME=hostile`` compares durations
without pods that run.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bench.report import print_report
from tidegate_testing import own_cluster
from tidegate_testing.acknowledgements import Acknowledgements
from tidegate_testing.hostile_routes import store_corpus, store_payloads, store_routes
from tidegate_testing.memory import in_bytes, peak_bytes
from tidegate_testing.operator_pods import OperatorPods, Pair
from tidegate_testing.waiting import wait_for
from tidegate_testing.watching import watched
from tidegate_testing.world import OPERATOR_NAMESPACE, PREFIX, World

NAMESPACE, HOSTILE = f"{PREFIX}-ten", f"{PREFIX}-hostile"
TEN = [f"app-{number}" for number in range(10)]
SUSPENDED = TEN[:3]
STARTING = 3
"""Applications that start at a time: all at once, no driver would have the time that a pod has to start."""
SECONDS_BETWEEN_BATCHES = "20"
EDITS = 5
"""Of each application, before what is hostile is stored and once it is there."""
PAYLOADS, MANY = 3000, 2000
"""Messages of the generator that are sent, and hostile objects of any kind that are there at least."""
GENEROUS = 600.0
MIB = 2**20


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

    def assert_memory_is_below_its_limit(self, pair: Pair) -> dict[str, float]:
        """Neither process ever had as much as the chart allows; the one that stands by reads what the leader does."""
        found: dict[str, float] = {}
        for role, pod in (("leader", pair.leader), ("standby", pair.standby)):
            limit = in_bytes(pod["spec"]["containers"][0]["resources"]["limits"]["memory"])
            process = self.operators.process(pod).identity.pid
            peak = peak_bytes(Path(f"/proc/{process}/status").read_text())
            assert peak < limit, pod["metadata"]["name"]
            found |= {f"peak_rss_mib_{role}": peak / MIB, "memory_limit_mib": limit / MIB}
        return found


def identities(pair: Pair) -> list[tuple[str, str, int]]:
    """Return what a restart changes, of the leader and of the standby."""
    found = []
    for pod in (pair.leader, pair.standby):
        (status,) = pod["status"]["containerStatuses"]
        found.append((pod["metadata"]["uid"], status["containerID"], status["restartCount"]))
    return found


def application(world: World, name: str) -> dict[str, Any]:
    # Whoever runs these tests once more on the same cluster finds no state of this run.
    spec = {
        "storage": {"deletionPolicy": "Delete"},
        # An executor without workers of Python needs less than the driver; ten of each have to find a place.
        "executor": {"resources": {"requests": {"cpu": "50m", "memory": "900Mi"}}},
        "podStartTimeoutSeconds": 600,
    }
    return world.app(name, NAMESPACE, main="script:counting.py", args=[SECONDS_BETWEEN_BATCHES], spec=spec)


@pytest.fixture
def stage(world: World) -> Iterator[Stage]:
    """The ten commit batches, and two replicas without a past look after them."""
    cluster = world.environment.cluster
    if cluster is None:
        own_cluster.leave_out("a foreign cluster is no place for hostile objects")
    made = Stage(world, OperatorPods(cluster, world.kubectl, OPERATOR_NAMESPACE))
    # Not held to a pod security standard, as that of the ten is: hostile pods would be refused before they are read.
    world.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOSTILE}})
    world.make_namespace(NAMESPACE)
    try:
        made.operators.renew()
        start_ten(made)
        yield made
    finally:
        world.kubectl.run("delete", "namespace", HOSTILE, "--ignore-not-found", "--wait=false")
        world.delete_apps(NAMESPACE)


def start_ten(stage: Stage) -> None:
    """Start a few at a time, until each has committed a batch."""
    for number, name in enumerate(TEN):
        if number >= STARTING:
            stage.await_batch(TEN[number - STARTING], above=-1)
        stage.world.kubectl.apply(application(stage.world, name))
    for name in TEN:
        stage.await_batch(name, above=-1)


@pytest.mark.timeout(3600)  # twenty JVMs start, a few at a time
@pytest.mark.long  # tests/integration/test_hostile_objects.py has it without pods that run
def test_ten_applications_go_on_and_the_operator_does_not_restart_whatever_is_stored_beside_them(stage: Stage) -> None:
    kubectl = stage.world.kubectl
    before = stage.operators.settle()
    assert [restarts for _, _, restarts in identities(before)] == [0, 0]
    edits = Acknowledgements(kubectl, NAMESPACE, TEN)

    with watched(kubectl, "sapp", NAMESPACE) as seen, ThreadPoolExecutor(1) as somebody:
        edits.edit_each("alone", seen, EDITS)
        batches = {name: stage.batch(name) for name in TEN}
        storing = somebody.submit(store_what_is_hostile, stage)
        edits.edit_until("arriving", seen, storing.done)
        stored = storing.result()
        assert stored >= MANY
        edits.edit_each("present", seen, EDITS)
    for name, batch in batches.items():
        stage.await_batch(name, above=batch)
    suspend_some(stage)
    stage.assert_operator_is_as(before)
    memory = stage.assert_memory_is_below_its_limit(before)

    # What is hostile can be deleted like anything else: its namespace ends once all finalizers are removed.
    kubectl.run("delete", "namespace", HOSTILE, f"--timeout={GENEROUS:.0f}s", timeout=GENEROUS + 10)
    stage.assert_operator_is_as(before)
    print(f"\n{edits.table()}\n")
    print_report("ten-applications", {**edits.results(), **memory, "restarts": 0.0}, {"stored": stored})


def store_what_is_hostile(stage: Stage) -> int:
    """Store it all; return how many objects the API server took."""
    kubectl = stage.world.kubectl
    wait_for("an account for pods", lambda: kubectl.get("serviceaccount", "default", HOSTILE), GENEROUS)
    stored = store_routes(kubectl, HOSTILE) + store_corpus(kubectl, HOSTILE)
    # Before there are thousands, which would have to be listed each time.
    await_what_was_read(stage)
    return stored + store_payloads(kubectl, HOSTILE, PAYLOADS)


def await_what_was_read(stage: Stage) -> None:
    """Wait until the operator has read of each kind what is worst."""
    stage.await_reason("controlmessages", "PayloadTooLarge")
    stage.await_reason("controlmessages", "InvalidPayload")
    stage.await_reason("streamingapps", "InvalidSpec")


def suspend_some(stage: Stage) -> None:
    """Edit some of the ten so that the operator has something to do, and see them come to rest."""
    for name in SUSPENDED:
        stage.world.kubectl.patch("sapp", name, NAMESPACE, {"spec": {"suspend": True}})
    for name in SUSPENDED:
        stage.await_suspension(name)
