"""State exported from a running application, and an application of another shape that begins with it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from devcluster.demo.replay import create_topics, delete_topics
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-exports"
TOPIC = "tidegate-e2e-kept-numbers"
BEFORE, AFTER = 600, 400
"""Numbers in the topic before the snapshot is asked for, and those that come afterwards."""
EXPORT = {"format": "Parquet", "resources": {"cpu": "100m", "memory": "1500Mi"}, "timeoutSeconds": 600}


@pytest.fixture
def topic(world: World) -> Iterator[str]:
    brokers = world.environment.kafka_host
    delete_topics(brokers, [TOPIC])
    create_topics(brokers, {TOPIC: 2})
    yield TOPIC
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, [TOPIC])


def send(world: World, first: int, count: int) -> None:
    """Have the topic hold so many more numbers, each confirmed."""
    producer = Producer({"bootstrap.servers": world.environment.kafka_host, "enable.idempotence": True, "acks": "all"})
    for number in range(first, first + count):
        producer.produce(TOPIC, key=str(number), value=str(number))
    assert producer.flush(60) == 0


def keeping(world: World, name: str, script: str, **groups: Any) -> dict[str, Any]:
    target = f"s3a://{world.bucket}/output/{NAMESPACE}/{name}"
    args = [world.environment.kafka_pods, TOPIC, target]
    return world.app(name, NAMESPACE, main=f"script:{script}", args=args, spec=groups)


def latest(world: World, app: str) -> dict[int, dict[str, int]]:
    """Return what an application wrote last of each digit."""
    listed = world.s3.get_paginator("list_objects_v2").paginate(
        Bucket=world.bucket, Prefix=f"output/{NAMESPACE}/{app}/"
    )
    keys = sorted(o["Key"] for page in listed for o in page.get("Contents", []))
    written = {key.split("/")[-2] for key in keys if key.endswith("/_SUCCESS")}
    found: dict[int, dict[str, int]] = {}
    for key in (key for key in keys if "/part-" in key and key.split("/")[-2] in written):
        for line in world.read(key).splitlines():
            row = json.loads(line)
            found[row["digit"]] = row
    return found


def await_numbers(world: World, app: str, numbers: int) -> dict[int, dict[str, int]]:
    """Return what an application wrote last of each digit, once that is of so many numbers."""

    def probe() -> dict[int, dict[str, int]]:
        seen = latest(world, app)
        assert sum(row["n"] for row in seen.values()) >= numbers, seen
        return seen

    return wait_for(f"{app} to have {numbers} numbers", probe, timeout=600, interval=2)


def export(world: World, name: str, nonce: int) -> dict[str, Any]:
    """Have a snapshot's state exported, and return what its status says of that."""
    world.kubectl.patch("snap", name, NAMESPACE, {"spec": {"export": {**EXPORT, "nonce": nonce}}})

    def probe() -> dict[str, Any]:
        found = world.kubectl.get("snap", name, NAMESPACE)
        assert found is not None
        said: dict[str, Any] = found["status"].get("export", {})
        assert (said.get("nonce"), said.get("phase")) == (nonce, "Complete"), found["status"]
        return said

    return wait_for(f"export {nonce} of {name}", probe, timeout=600, interval=2)


def test_another_shape_of_state_begins_with_an_export_and_no_input_is_lost_or_repeated(
    world: World, topic: str
) -> None:
    del topic
    world.make_namespace(NAMESPACE)
    send(world, 0, BEFORE)
    world.kubectl.apply(keeping(world, "old", "keeping.py"))
    await_numbers(world, "old", 200)
    world.kubectl.apply(
        {
            "apiVersion": "tidegate.dev/v1alpha1",
            "kind": "StreamSnapshot",
            "metadata": {"name": "midway", "namespace": NAMESPACE},
            "spec": {"appRef": {"name": "old"}},
        }
    )
    world.kubectl.run("wait", "snap/midway", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=300s", timeout=310)

    first, second = export(world, "midway", 1), export(world, "midway", 2)
    assert first["uri"] != second["uri"]
    assert (first["digest"], first["rows"], first["bytes"]) == (second["digest"], second["rows"], second["bytes"])
    assert first["tables"] == 3
    world.kubectl.run("wait", "snap/midway", "-n", NAMESPACE, "--for=condition=Exported", "--timeout=120s", timeout=130)
    wait_for("the pods to be gone", lambda: not export_pods(world), timeout=300, interval=1)

    world.kubectl.apply(keeping(world, "new", "keeping_anew.py", startFrom={"export": first["uri"]}))
    send(world, BEFORE, AFTER)
    found = await_numbers(world, "new", BEFORE + AFTER)
    numbers = range(BEFORE + AFTER)
    expected = {digit: [n for n in numbers if n % 10 == digit] for digit in range(10)}
    for digit, row in found.items():
        assert (row["n"], row["sum"]) == (len(expected[digit]), sum(expected[digit])), row
        assert row["hundreds"] == len(expected[digit])
        assert 0 < row["old"] < row["n"]
    assert world.get_app("old", NAMESPACE)["status"]["epoch"] == 1


def export_pods(world: World) -> list[str]:
    """Return the names of the pods that export."""
    listed = json.loads(world.kubectl.run("get", "pods", "-n", NAMESPACE, "-o", "json"))
    names = [item["metadata"]["name"] for item in listed["items"]]
    return [name for name in names if "-export-" in name]
