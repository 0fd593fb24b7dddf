"""A topic is deleted and created again: what the application says, what an upgrade makes of it, and the way on.

The application keeps the numbers of a topic. Another one continues with its state and with the new topic's records.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from devcluster.demo.replay import create_topics, delete_topics
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-lost-records"
TOPIC = "tidegate-e2e-lost-numbers"
BEFORE, AFTER = 300, 100
GATE_SECONDS = 60
"""What the new version has to become stable in: less than two of the driver's restarts take."""


def send(world: World, count: int) -> None:
    """Have the topic, of one partition, hold so many more numbers."""
    producer = Producer({"bootstrap.servers": world.environment.kafka_host, "enable.idempotence": True, "acks": "all"})
    for number in range(count):
        producer.produce(TOPIC, key=str(number), value=str(number))
    assert producer.flush(60) == 0


@pytest.fixture
def topic(world: World) -> Iterator[str]:
    brokers = world.environment.kafka_host
    world.make_namespace(NAMESPACE)
    delete_topics(brokers, [TOPIC])
    create_topics(brokers, {TOPIC: 1})
    send(world, BEFORE)
    yield TOPIC
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, [TOPIC])


def keep(world: World, name: str, **groups: Any) -> None:
    """Apply an application that keeps the numbers."""
    args = [world.environment.kafka_pods, TOPIC, f"s3a://{world.bucket}/output/{NAMESPACE}/{name}"]
    spec = {"upgrade": {"stableBatches": 1, "timeoutSeconds": GATE_SECONDS}, **groups}
    world.kubectl.apply(world.app(name, NAMESPACE, main="script:keeping.py", args=args, spec=spec))


def kept(world: World, app: str) -> int:
    """Return how many numbers an application had when it wrote last of each digit."""
    prefix = f"output/{NAMESPACE}/{app}/"
    pages = world.s3.get_paginator("list_objects_v2").paginate(Bucket=world.bucket, Prefix=prefix)
    keys = sorted(found["Key"] for page in pages for found in page.get("Contents", []))
    written = {key.split("/")[-2] for key in keys if key.endswith("/_SUCCESS")}
    latest: dict[int, int] = {}
    for key in (key for key in keys if "/part-" in key and key.split("/")[-2] in written):
        latest.update((row["digit"], row["n"]) for row in map(json.loads, world.read(key).splitlines()))
    return sum(latest.values())


def await_kept(world: World, app: str, numbers: int) -> None:
    def probe() -> bool:
        found = kept(world, app)
        assert found == numbers, found
        return True

    wait_for(f"{app} to have {numbers} numbers", probe, timeout=600, interval=2)


def app_of(world: World, app: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return status and the condition Ready."""
    found = world.get_app(app, NAMESPACE)
    return found.get("status", {}), world.kubectl.condition(found, "Ready")


def await_lost(world: World, app: str) -> dict[str, Any]:
    """Return the status once it says that records are lost, which each restart of the driver hides for a moment."""

    def probe() -> dict[str, Any]:
        status, ready = app_of(world, app)
        assert (ready.get("status"), ready.get("reason")) == ("False", "SourceDataLost"), ready
        assert f"topic '{TOPIC}', partition 0 " in ready["message"]
        assert "spec.upgrade.startingOffsets" in ready["message"]
        return status

    return wait_for(f"{app} to say what is lost", probe, timeout=600, interval=1)


def is_stable(world: World, app: str) -> bool:
    status, _ = app_of(world, app)
    return bool(status.get("lastStable"))


@pytest.mark.long  # tests/integration/spark_runtime/test_lost_records.py has the drivers, tests/unit the gate
def test_an_upgrade_is_not_blamed_for_a_topic_that_was_created_again_and_the_state_continues_elsewhere(
    world: World, topic: str
) -> None:
    keep(world, "keeper")
    await_kept(world, "keeper", BEFORE)
    wait_for("a stable version", lambda: is_stable(world, "keeper"), timeout=300, interval=1)
    delete_topics(world.environment.kafka_host, [topic])
    create_topics(world.environment.kafka_host, {topic: 1})
    send(world, AFTER)
    before = await_lost(world, "keeper")["epoch"]

    # Another version lacks them as well. It has done nothing: it is rolled back, and not for a fault of its own. The
    # previous one lacks them, too: the rollback is not over until somebody acts.
    edit = {"application": {"env": [{"name": "VERSION", "value": "2"}]}}
    world.kubectl.patch("sapp", "keeper", NAMESPACE, {"spec": edit})

    def of_previous() -> dict[str, Any]:
        status = await_lost(world, "keeper")
        assert status["epoch"] == before + 2, status["epoch"]
        return status

    upgrade = wait_for("the launch of the previous version", of_previous, timeout=900, interval=5)["upgrade"]
    assert (upgrade["phase"], upgrade["reason"]) == ("RollingBack", "SourceDataLost")

    # Another application continues with the state, and with what the topic has now.
    world.kubectl.patch("sapp", "keeper", NAMESPACE, {"spec": {"suspend": True}})
    snapshot = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamSnapshot",
        "metadata": {"name": "kept", "namespace": NAMESPACE},
        "spec": {"appRef": {"name": "keeper"}},
    }
    world.kubectl.apply(snapshot)
    world.kubectl.run("wait", "snap/kept", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=300s", timeout=310)
    offsets = json.dumps({topic: {"0": 0}})
    keep(world, "heir", startFrom={"snapshotRef": {"name": "kept"}, "startingOffsets": offsets, "outputs": "TakeOver"})
    await_kept(world, "heir", BEFORE + AFTER)
    assert world.status("heir", NAMESPACE)["lineage"] == 1
