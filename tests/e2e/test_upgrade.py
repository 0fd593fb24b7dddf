"""The sample gets another version while data flow: it is stable, or fails in its third batch and is taken back.

Another version is another program, or another Spark. In all cases every decision is what an independent computation
over the whole input says.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster import images, paths
from devcluster.demo.application import Application, build_application, committed_batches
from devcluster.demo.compare import TopicReader, compare, read_topic
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import Replay, create_topics, delete_topics
from devcluster.demo.scenario import Scenario
from tidegate_testing.apps import SCRIPTS, SCRIPTS_PATH
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-upgrade"
READINGS, SETTINGS, DECISIONS = (f"{NAMESPACE}-{name}" for name in ("readings", "settings", "decisions"))
SCENARIO = Scenario(readings=5_000, shifts=30)
RATE = 40.0
"""Readings per second: data flow for longer than any upgrade takes."""
MOST_READINGS = 250
"""Readings in one batch: however long the new version takes to come, it finds enough for more than three batches."""
GATE = 3, 6
"""Batches after which a version is stable: the good one soon, the one with the bug not before its bug."""


class Run:
    """One run of the sample through one change of its version."""

    def __init__(self, world: World, stable_batches: int, image: str) -> None:
        self.world = world
        self.app: Application = build_application(
            image=image or world.environment.image_spark,
            endpoint=world.environment.s3_endpoint_pods,
            bucket=world.bucket,
            namespace=NAMESPACE,
            options={
                "brokers": world.environment.kafka_pods,
                "readings": READINGS,
                "settings": SETTINGS,
                "decisions": DECISIONS,
                "trigger": "200 milliseconds",
                "max-readings": str(MOST_READINGS),
            },
        )
        # The first version is stable with its first batch: no further one comes while its word is waited for.
        self.app.manifest["spec"]["upgrade"] = {"stableBatches": 1}
        self.stable_batches = stable_batches
        self.reader = TopicReader(world.environment.kafka_host, DECISIONS)
        self.ids: set[str] = set()

    # --- what is seen -------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.world.get_app(self.app.name, NAMESPACE).get("status", {})
        return status

    def upgrade(self) -> dict[str, Any]:
        upgrade: dict[str, Any] = self.status().get("upgrade", {})
        return upgrade

    def ready(self) -> tuple[str, str]:
        """Return status and reason of the condition Ready."""
        (found,) = [each for each in self.status()["conditions"] if each["type"] == "Ready"]
        return found["status"], found["reason"]

    def events(self) -> set[str]:
        """Return the reasons of the application's events."""
        events = self.world.kubectl.list("events", NAMESPACE)
        return {event["reason"] for event in events if event["involvedObject"]["name"] == self.app.name}

    def driver_hash(self) -> str:
        pod = self.world.kubectl.get("pod", self.app.driver_pod, NAMESPACE)
        return str(pod["metadata"]["annotations"]["tidegate.dev/spec-hash"]) if pod is not None else ""

    def spark(self) -> str:
        """Return the version of the Spark that claimed the storage last."""
        claim = json.loads(self.world.read(f"apps/{NAMESPACE}/{self.app.name}/app.json"))
        return str(claim["sparkVersion"])

    def await_phase(self, *phases: str) -> None:
        wait_for(f"the upgrade to be {phases}", lambda: self.upgrade().get("phase") in phases, timeout=240, interval=1)

    def await_decisions(self) -> None:
        expected = set(expected_decisions(SCENARIO.records()))

        def all_there() -> bool:
            self.ids |= {decision["id"] for decision in self.reader.poll(0.2)}
            return expected <= self.ids

        wait_for("the last decision", all_there, timeout=240, interval=0)

    def await_first_batch(self) -> None:
        listed = self.world.s3.list_objects_v2
        wait_for(
            "the first committed batch",
            lambda: committed_batches(
                o["Key"] for o in listed(Bucket=self.world.bucket, Prefix=self.app.commits()).get("Contents", [])
            ),
            timeout=240,
        )

    # --- what is done -------------------------------------------------------------------------------------------------

    def change_version(self, *more: str) -> None:
        """Apply another program, once the version that runs is stable."""
        application = self.app.manifest["spec"]["application"]
        script = f"local://{SCRIPTS_PATH}/upgraded_temperature.py"
        args = [application["main"].removeprefix("local://"), *application["args"], *more]
        mount = {"name": "scripts", "mountPath": SCRIPTS_PATH, "readOnly": True}
        template = {
            "spec": {
                "volumes": [{"name": "scripts", "configMap": {"name": SCRIPTS}}],
                "containers": [{"name": "driver", "volumeMounts": [mount]}],
            }
        }
        self.apply_version({"application": {"main": script, "args": args}, "driver": {"podTemplate": template}})

    def apply_version(self, spec: dict[str, Any]) -> None:
        """Apply another version, once the one that runs is stable."""
        wait_for("a stable version", lambda: "lastStable" in self.status(), timeout=180, interval=1)
        gate = {"stableBatches": self.stable_batches}
        self.world.kubectl.patch("sapp", self.app.name, NAMESPACE, {"spec": {**spec, "upgrade": gate}})

    def replay(self, at: dict[int, Callable[[], None]]) -> None:
        """Send all readings; do what is to be done as soon as so many percent of them are sent."""
        due = sorted(((percent * SCENARIO.readings // 100, do) for percent, do in at.items()), reverse=True)

        def progress(done: int) -> None:
            while due and done >= due[-1][0]:
                due.pop()[1]()

        replay = Replay(self.world.environment.kafka_host, READINGS, SETTINGS)
        replay.run(SCENARIO.records(), ready=self.await_first_batch, progress=progress, rate=RATE)
        assert due == []


@pytest.fixture
def image_before(world: World) -> str:
    """The image of the line of Spark before; built, the first time, and loaded for who asks for it."""
    cluster = world.environment.cluster
    if cluster is not None:
        images.load(cluster, [images.SPARK_BEFORE])
        return images.SPARK_BEFORE.name
    named = os.environ.get("TIDEGATE_IMAGE_SPARK_BEFORE", "")
    if not named:
        pytest.skip("TIDEGATE_IMAGE_SPARK_BEFORE names no image with Spark 4.1 that the cluster can pull")
    return named


@pytest.fixture
def start(world: World) -> Iterator[Callable[..., Run]]:
    """Return what applies the sample, with topics of its own."""
    brokers, topics, runs = world.environment.kafka_host, [READINGS, SETTINGS, DECISIONS], list[Run]()
    world.make_namespace(NAMESPACE)
    delete_topics(brokers, topics)
    create_topics(brokers, {READINGS: 4, SETTINGS: 4, DECISIONS: 2})

    def begin(stable_batches: int, image: str = "") -> Run:
        runs.append(Run(world, stable_batches, image))
        world.kubectl.apply(runs[-1].app.manifest)
        return runs[-1]

    yield begin
    for run in runs:
        run.reader.close()
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, topics)


def judge_decisions(run: Run) -> None:
    """Compare everything that was ever sent with what the input asks for."""
    run.await_decisions()
    # Only an application that is gone can send nothing wrong any more.
    run.world.delete_apps(NAMESPACE)
    comparison = compare(
        expected_decisions(SCENARIO.records()), read_topic(run.world.environment.kafka_host, DECISIONS)
    )
    print(comparison.report())
    assert comparison.ok, comparison.report()


def test_a_new_version_takes_over_while_data_flow_and_decides_as_it_should(
    world: World, start: Callable[..., Run]
) -> None:
    run = start(GATE[0])
    late: list[str] = []
    run.replay({10: run.change_version, 95: lambda: late.append(run.upgrade()["phase"])})
    # Not after the data: it took over while they came.
    assert late[0] in ("Gate", "Done")
    run.await_phase("Done")
    status, upgrade = run.status(), run.upgrade()
    assert (status["epoch"], status["lineage"], run.ready()) == (2, 1, ("True", "Running"))
    assert status["lastStable"]["specHash"] == upgrade["toSpecHash"] == run.driver_hash()
    wait_for("the pin", lambda: run.upgrade()["pin"].get("batches"), timeout=120)
    pin = run.upgrade()["pin"]
    kept = {key.partition(f"/{run.app.name}/")[2] for key in world.keys(run.app.name, NAMESPACE)}
    assert f"snapshots/{pin['id']}/manifest.json" in kept
    assert {"UpgradeCopying", "UpgradeStopping", "UpgradeDone"} <= run.events()
    judge_decisions(run)


def test_a_version_that_raises_in_its_third_batch_is_taken_back_by_itself(
    world: World, start: Callable[..., Run]
) -> None:
    run = start(GATE[1])
    before: list[str] = []

    def change() -> None:
        run.change_version("--bug")
        before.append(run.status()["lastStable"]["specHash"])

    run.replay({10: change})
    run.await_phase("RolledBack")
    status, upgrade = run.status(), run.upgrade()
    assert (status["epoch"], status["lineage"], run.ready()) == (3, 2, ("False", "UpgradeRolledBack"))
    assert (upgrade["reason"], upgrade["fromSpecHash"]) == ("ApplicationFailed", before[0])
    assert "that is where the bug is" in upgrade["message"]
    assert status["lastStable"]["specHash"] == run.driver_hash() == before[0]
    assert (status["startFrom"]["id"], status["startFrom"]["ofLineage"]) == (upgrade["pin"]["id"], 1)
    assert {"UpgradeRollingBack", "UpgradeRolledBack", "StartedFromSnapshot"} <= run.events()
    judge_decisions(run)


def pinned_spark(lock: str) -> str:
    """Return the version of PySpark in a lock file."""
    found = re.search(r"^pyspark==(\S+)", (paths.ROOT / "locks" / lock).read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.timeout(2700)  # the first time its image is built
def test_another_line_of_spark_takes_over_with_the_state_while_data_flow(
    world: World, image_before: str, start: Callable[..., Run]
) -> None:
    run = start(GATE[0], image_before)
    before: list[str] = []

    def change() -> None:
        before.append(run.spark())
        run.apply_version({"application": {"image": world.environment.image_spark}})

    run.replay({10: change})
    run.await_phase("Done")
    assert (before, run.spark()) == ([pinned_spark("spark-4.1.lock")], pinned_spark("spark.lock"))
    status, upgrade = run.status(), run.upgrade()
    assert (status["epoch"], status["lineage"], run.ready()) == (2, 1, ("True", "Running"))
    assert status["lastStable"]["specHash"] == upgrade["toSpecHash"] == run.driver_hash()
    wait_for("the pin", lambda: run.upgrade()["pin"].get("batches"), timeout=120)
    judge_decisions(run)
