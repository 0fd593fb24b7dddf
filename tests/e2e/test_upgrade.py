"""The sample goes from version to version while data flow: another Spark and another program, and one with a bug.

The first is stable, and its driver's JVM is killed. The other one fails in its third batch and is rolled back. In
the end every decision is what an independent computation over the whole input says.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster import images, paths
from devcluster.demo.application import Application, build_application
from devcluster.demo.compare import TopicReader, compare, read_topic
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import Replay, create_topics, delete_topics
from devcluster.demo.scenario import Scenario
from tidegate_testing.apps import SCRIPTS, SCRIPTS_PATH
from tidegate_testing.driver_kills import DriverKills
from tidegate_testing.waiting import CannotComeError, wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-upgrade"
READINGS, SETTINGS, DECISIONS = (f"{NAMESPACE}-{name}" for name in ("readings", "settings", "decisions"))
SCENARIO = Scenario(readings=3_000, shifts=20)
RATE = 50.0
"""Readings per second: data flow while each version takes over from the one before."""
MOST_READINGS = 100
"""Readings in one batch."""
UPGRADE, STABLE, KILL_JVM, BUG = 5, 36, 44, 66
"""Percent of the readings sent when something is done to the application; what was done before is waited for. Readings
are sent between what is waited for and a kill, so that it meets a driver at work."""
UPGRADE_LAUNCHED, RESTARTED, BUG_LAUNCHED = 12, 54, 76
"""Percent of the readings sent when its driver has to be started: however long that takes, those that follow are left
for it, and they are enough for more than three batches."""
GOOD_GATE, BAD_GATE = 3, 6
"""Batches after which a version is stable: a good one soon, the one with the bug not before its bug."""


class Run:
    """One run of the sample through changes of its version."""

    def __init__(self, world: World, image: str) -> None:
        self.world = world
        self.app: Application = build_application(
            image=image,
            endpoint=world.environment.s3_endpoint_pods,
            bucket=world.bucket,
            namespace=NAMESPACE,
            options={
                "brokers": world.environment.kafka_pods,
                "readings": READINGS,
                "settings": SETTINGS,
                "decisions": DECISIONS,
                "trigger": "2 seconds",
                "max-readings": str(MOST_READINGS),
            },
        )
        # The first version is stable with its first batch: no further one comes while its word is waited for.
        self.app.manifest["spec"]["upgrade"] = {"stableBatches": 1}
        self.kills = DriverKills(world, self.app, NAMESPACE)
        self.reader = TopicReader(world.environment.kafka_host, DECISIONS)
        self.ids: set[str] = set()

    # --- what is seen -------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        return self.kills.status()

    def upgrade(self) -> dict[str, Any]:
        upgrade: dict[str, Any] = self.status().get("upgrade", {})
        return upgrade

    def await_ready(self, status: str, reason: str) -> None:
        """Wait until the condition Ready says so."""

        def probe() -> bool:
            (found,) = [each for each in self.status()["conditions"] if each["type"] == "Ready"]
            assert (found["status"], found["reason"]) == (status, reason), found
            return True

        wait_for(f"Ready to be {status} because of {reason}", probe, timeout=300)

    def await_launch(self, epoch: int) -> None:
        """Wait until the next version is started: whatever is sent from then on, the one before does not take it."""
        wait_for(f"launch {epoch}", lambda: self.status()["epoch"] >= epoch, timeout=900, interval=1)

    def driver_hash(self) -> str:
        pod = self.world.kubectl.get("pod", self.app.driver_pod, NAMESPACE)
        return str(pod["metadata"]["annotations"]["tidegate.dev/spec-hash"]) if pod is not None else ""

    def spark(self) -> str:
        """Return the version of the Spark that claimed the storage last."""
        claim = json.loads(self.world.read(f"apps/{NAMESPACE}/{self.app.name}/app.json"))
        return str(claim["sparkVersion"])

    def await_upgrade(self, phase: str, epoch: int) -> None:
        """Wait until the upgrade is in a phase after so many launches: the one before ended in one, too."""
        ended = {"Completed", "RolledBack", "Refused"} - {phase}
        # A version that is taken back ends the epoch before the one in which the old version goes on.
        last = epoch - 1 if phase == "RolledBack" else epoch

        def probe() -> bool:
            status = self.status()
            now = status.get("upgrade", {}).get("phase")
            if status["epoch"] >= last and now in ended:
                raise CannotComeError(f"the upgrade is {now} and not {phase}: {status}")
            assert (now, status["epoch"]) == (phase, epoch), status
            return True

        wait_for(f"the upgrade to be {phase} in epoch {epoch}", probe, timeout=900, interval=1)

    def await_decisions(self) -> None:
        expected = set(expected_decisions(SCENARIO.records()))

        def all_there() -> bool:
            self.ids |= {decision["id"] for decision in self.reader.poll(0.2)}
            return expected <= self.ids

        wait_for("the last decision", all_there, timeout=600, interval=0)

    def await_first_batch(self) -> None:
        wait_for("the first committed batch", lambda: self.kills.newest_batch() >= 0, timeout=600)

    # --- what is done -------------------------------------------------------------------------------------------------

    def change_program(self, stable_batches: int, *more: str, image: str) -> None:
        """Apply another program in an image, once the version that runs is stable."""
        args = [self.app.manifest["spec"]["application"]["main"].removeprefix("local://"), *self.arguments(), *more]
        mount = {"name": "scripts", "mountPath": SCRIPTS_PATH, "readOnly": True}
        template = {
            "spec": {
                "volumes": [{"name": "scripts", "configMap": {"name": SCRIPTS}}],
                "containers": [{"name": "driver", "volumeMounts": [mount]}],
            }
        }
        program = {"image": image, "main": f"local://{SCRIPTS_PATH}/upgraded_temperature.py", "args": args}
        self.change(stable_batches, {"application": program, "driver": {"podTemplate": template}})

    def arguments(self) -> list[str]:
        given: list[str] = self.app.manifest["spec"]["application"]["args"]
        return given

    def change(self, stable_batches: int, spec: dict[str, Any]) -> None:
        """Apply another version, once the one that runs is stable."""
        wait_for("a stable version", lambda: "lastStable" in self.status(), timeout=300, interval=1)
        gate = {"stableBatches": stable_batches}
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

    # --- what must be so ----------------------------------------------------------------------------------------------

    def judge_takeover(self, epoch: int) -> None:
        """Another version has taken over where the one before stopped, and is stable."""
        self.await_upgrade("Completed", epoch)
        self.await_ready("True", "Running")
        status, upgrade = self.status(), self.upgrade()
        assert status["lineage"] == 1
        assert status["lastStable"]["specHash"] == upgrade["toSpecHash"] == self.driver_hash()
        wait_for("the pin", lambda: self.upgrade()["rollbackSnapshot"].get("batches"), timeout=300)
        pin = self.upgrade()["rollbackSnapshot"]
        kept = {key.partition(f"/{self.app.name}/")[2] for key in self.world.keys(self.app.name, NAMESPACE)}
        assert f"snapshots/{pin['id']}/manifest.json" in kept
        self.world.await_events(self.app.name, NAMESPACE, "UpgradeCopying", "UpgradeStopping", "UpgradeCompleted")

    def judge_rollback(self, epoch: int, before: str) -> None:
        """The version with the bug is gone, and the one before goes on from where it was stopped."""
        self.await_upgrade("RolledBack", epoch)
        self.await_ready("False", "UpgradeRolledBack")
        status, upgrade = self.status(), self.upgrade()
        assert status["lineage"] == 2
        assert (upgrade["reason"], upgrade["fromSpecHash"]) == ("ApplicationFailed", before)
        assert "that is where the bug is" in upgrade["message"]
        assert status["lastStable"]["specHash"] == self.driver_hash() == before
        assert (status["startFrom"]["id"], status["startFrom"]["snapshotLineage"]) == (
            upgrade["rollbackSnapshot"]["id"],
            1,
        )
        reasons = ("UpgradeRollingBack", "UpgradeRolledBack", "StartedFromSnapshot")
        self.world.await_events(self.app.name, NAMESPACE, *reasons)

    def judge_decisions(self) -> None:
        """Compare everything that was ever sent with what the input asks for."""
        self.await_decisions()
        # Only an application that is gone can send nothing wrong any more.
        self.world.delete_apps(NAMESPACE)
        comparison = compare(
            expected_decisions(SCENARIO.records()), read_topic(self.world.environment.kafka_host, DECISIONS)
        )
        print(comparison.report())
        assert comparison.ok, comparison.report()


@pytest.fixture
def image_before(world: World) -> str:
    """The image of the line of Spark before; built, the first time, and loaded for who asks for it."""
    cluster = world.environment.cluster
    if cluster is not None:
        images.load(cluster, [images.SPARK_BEFORE])
        return images.SPARK_BEFORE.name
    named = os.environ.get("TIDEGATE_IMAGE_SPARK_BEFORE", "")
    if not named:
        pytest.fail("TIDEGATE_IMAGE_SPARK_BEFORE must name an image with Spark 4.1 that this cluster can pull")
    return named


@pytest.fixture
def run(world: World, image_before: str) -> Iterator[Run]:
    """The sample is applied in its first version, with topics of its own."""
    brokers, topics = world.environment.kafka_host, [READINGS, SETTINGS, DECISIONS]
    world.make_namespace(NAMESPACE)
    delete_topics(brokers, topics)
    create_topics(brokers, {READINGS: 4, SETTINGS: 4, DECISIONS: 2})
    made = Run(world, image_before)
    world.apply_sample(made.app.manifest)
    yield made
    made.reader.close()
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, topics)


def pinned_spark(lock: str) -> str:
    """Return the version of PySpark in a lock file."""
    found = re.search(r"^pyspark==(\S+)", (paths.ROOT / "locks" / lock).read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.timeout(2700)  # the first time the image of the line before is built
def test_another_spark_takes_over_while_data_flow_and_a_version_that_raises_in_its_third_batch_is_rolled_back(
    run: Run,
) -> None:
    image, stable = run.world.environment.image_spark, list[str]()

    def another_spark_and_program() -> None:
        assert run.spark() == pinned_spark("spark-4.1.lock")
        run.change_program(GOOD_GATE, image=image)

    def it_took_over() -> None:
        run.judge_takeover(epoch=2)
        assert run.spark() == pinned_spark("spark.lock")

    def one_with_a_bug() -> None:
        stable.append(run.status()["lastStable"]["specHash"])
        run.change_program(BAD_GATE, "--bug", image=image)

    run.replay(
        {
            UPGRADE: another_spark_and_program,
            UPGRADE_LAUNCHED: lambda: run.await_launch(2),
            STABLE: it_took_over,
            KILL_JVM: run.kills.kill_the_jvm,
            RESTARTED: run.kills.await_restart,
            BUG: one_with_a_bug,
            BUG_LAUNCHED: lambda: run.await_launch(3),
        }
    )
    run.judge_rollback(4, stable[0])
    run.judge_decisions()
