"""The sample under fire: its driver's JVM is killed, then its whole driver pod, and not one decision is lost or wrong.

What must come out is computed from the same input by the demo's oracle, which shares no code with the sample.
"""

from collections.abc import Callable, Iterator

import pytest

from devcluster.demo.application import Application, build_application
from devcluster.demo.compare import TopicReader, compare, read_topic
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import Replay, create_topics, delete_topics
from devcluster.demo.scenario import Scenario
from tidegate_testing.driver_kills import DriverKills
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
        self.kills = DriverKills(world, self.app, NAMESPACE)

    def await_first_batch(self) -> None:
        """Return when a batch is committed: from then on the query knows where its readings begin."""
        wait_for("the first committed batch", lambda: self.kills.newest_batch() >= 0, timeout=600)

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

    def await_decisions(self) -> None:
        """Return when everything is decided."""
        expected = set(expected_decisions(SCENARIO.records()))

        def all_there() -> bool:
            self.ids |= {decision["id"] for decision in self.reader.poll(0.2)}
            return expected <= self.ids

        wait_for("the last decision", all_there, timeout=600, interval=0)


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


@pytest.mark.long  # test_upgrade.py kills the sample's driver in both ways, too
def test_no_decision_is_lost_or_wrong_when_the_driver_is_killed_twice_while_data_flow(run: Run, world: World) -> None:
    total = SCENARIO.readings
    run.replay(
        {
            total * 3 // 10: run.kills.kill_the_jvm,
            total * 5 // 10: run.kills.await_restart,
            total * 7 // 10: run.kills.kill_the_pod,
        }
    )
    assert run.replayed == total
    run.await_decisions()
    run.kills.await_next_epoch()
    # Only an application that is gone can send nothing wrong any more.
    world.delete_apps(NAMESPACE)
    consumed = read_topic(world.environment.kafka_host, DECISIONS)
    comparison = compare(expected_decisions(SCENARIO.records()), consumed)
    print(comparison.report())
    assert comparison.ok, comparison.report()
    assert world.keys(run.app.name, NAMESPACE) == [], "deletionPolicy: Delete takes the storage along"
