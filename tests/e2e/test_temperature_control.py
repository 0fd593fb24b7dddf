"""The sample under fire: its driver's JVM is killed, then its whole driver pod, and not one decision is lost or wrong.

What must come out is computed from the same input by the demo's oracle, which shares no code with the sample.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster import tools
from devcluster.demo.application import Application, build_application, committed_batches
from devcluster.demo.compare import TopicReader, compare, read_topic
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import Replay, create_topics, delete_topics
from devcluster.demo.scenario import Scenario
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-temperature"
READINGS, SETTINGS, DECISIONS = "tidegate-e2e-readings", "tidegate-e2e-settings", "tidegate-e2e-decisions"
SCENARIO = Scenario(readings=6_000, shifts=30)
RATE = 250.0
"""Readings per second: so slow that every batch is followed by another one, so that a kill meets one under way."""


class Run:
    """One run of the sample: what it was asked, what it has decided so far."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.app: Application = build_application(
            image=world.environment.image_spark,
            endpoint=world.environment.s3_endpoint_pods,
            bucket=world.bucket,
            namespace=NAMESPACE,
            options={
                "brokers": world.environment.kafka_pods,
                "readings": READINGS,
                "settings": SETTINGS,
                "decisions": DECISIONS,
                "trigger": "200 milliseconds",
            },
        )
        self.reader = TopicReader(world.environment.kafka_host, DECISIONS)
        self.ids: set[str] = set()
        self.replayed = 0

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.world.get_app(self.app.name, NAMESPACE).get("status", {})
        return status

    def launches(self) -> tuple[int, int]:
        """Return the epoch and the restarts within it."""
        status = self.status()
        return status["epoch"], status.get("driver", {}).get("restarts", 0)

    def read(self) -> int:
        """Take the decisions that have come; return how many different ones there are."""
        self.ids |= {decision["id"] for decision in self.reader.poll(0.2)}
        return len(self.ids)

    def await_new_decisions(self, when: str) -> None:
        """Return when a decision has come that was not there before."""
        before = self.read()
        wait_for(f"a new decision {when}", lambda: self.read() > before, timeout=600, interval=0)

    def await_first_batch(self) -> None:
        """Return when a batch is committed: from then on the query knows where its readings begin."""
        listed = self.world.s3.list_objects_v2
        wait_for(
            "the first committed batch",
            lambda: committed_batches(
                o["Key"] for o in listed(Bucket=self.world.bucket, Prefix=self.app.commits()).get("Contents", [])
            ),
            timeout=600,
        )

    def replay(self, at: dict[int, Callable[[], None]]) -> None:
        """Send all readings; do what is to be done as soon as so many are sent."""
        due = sorted(at.items(), reverse=True)

        def progress(done: int) -> None:
            self.replayed = done
            while due and done >= due[-1][0]:
                due.pop()[1]()

        replay = Replay(self.world.environment.kafka_host, READINGS, SETTINGS)
        replay.run(SCENARIO.records(), ready=self.await_first_batch, progress=progress, rate=RATE)
        assert due == []

    # --- faults -------------------------------------------------------------------------------------------------------

    def kill_the_jvm(self) -> None:
        """SIGKILL, a moment after readings were sent: nothing can be finished or told."""
        self.await_new_decisions("before the JVM is killed")
        assert self.launches() == (1, 0)
        kubectl = self.world.kubectl
        Kubernetes(kubectl.binary, tools.program("helm"), kubectl.kubeconfig).kill_process(
            self.app.driver_pod, NAMESPACE, "driver", "java"
        )

    def await_restart(self) -> None:
        """Return when the same pod's driver has decided something again and the resource tells of its restart."""
        self.await_new_decisions("after the JVM was killed")

        wait_for("the restart in the status", lambda: self.launches() == (1, 1), timeout=600)
        assert self.status()["lastExit"]["exitCode"] != 0

    def kill_the_pod(self) -> None:
        """Delete the pod with one second of grace: its batch cannot be brought to an end, and the node clears it."""
        self.await_new_decisions("before the pod is deleted")
        self.world.kubectl.run("delete", "pod", self.app.driver_pod, "-n", NAMESPACE, "--now", "--wait=false")

    def await_next_epoch(self) -> None:
        """Return when everything is decided and the resource tells of a new driver pod."""
        expected = set(expected_decisions(SCENARIO.records()))
        wait_for("the last decision", lambda: bool(self.read()) and expected <= self.ids, timeout=600, interval=0)
        wait_for("the second epoch in the status", lambda: self.launches() == (2, 0), timeout=600)
        # The first driver may have decided everything before it ended; the second one is still starting then.
        wait_for("the second driver to run", lambda: self.status()["phase"] == "Running", timeout=600)


@pytest.fixture
def run(world: World) -> Iterator[Run]:
    """The sample is applied in a namespace held to the restricted pod security standard, with topics of its own."""
    brokers = world.environment.kafka_host
    world.make_namespace(NAMESPACE)
    delete_topics(brokers, [READINGS, SETTINGS, DECISIONS])
    create_topics(brokers, {READINGS: 4, SETTINGS: 4, DECISIONS: 2})
    made = Run(world)
    world.apply_sample(made.app.manifest)
    yield made
    made.reader.close()
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, [READINGS, SETTINGS, DECISIONS])


def test_no_decision_is_lost_or_wrong_when_the_driver_is_killed_twice_while_data_flow(run: Run, world: World) -> None:
    total = SCENARIO.readings
    run.replay(
        {
            total * 3 // 10: run.kill_the_jvm,
            total * 5 // 10: run.await_restart,
            total * 7 // 10: run.kill_the_pod,
        }
    )
    assert run.replayed == total
    run.await_next_epoch()
    # Only an application that is gone can send nothing wrong any more.
    world.delete_apps(NAMESPACE)
    consumed = read_topic(world.environment.kafka_host, DECISIONS)
    comparison = compare(expected_decisions(SCENARIO.records()), consumed)
    print(comparison.report())
    assert comparison.ok, comparison.report()
    assert world.keys(run.app.name, NAMESPACE) == [], "onDelete: Delete takes the storage along"
