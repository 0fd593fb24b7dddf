"""Snapshots by schedule, one at an application's end, and an application that goes on from that one, imported."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer

from devcluster.demo.replay import create_topics, delete_topics
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-snapshots"
TOPIC = "tidegate-e2e-numbers"
BEFORE, AFTER = 1_000, 600
"""Numbers in the topic before the snapshot is asked for, and those that come afterwards."""


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


def folder(app: str) -> str:
    return f"output/{NAMESPACE}/{app}"


def tallying(world: World, name: str, **groups: Any) -> dict[str, Any]:
    args = [world.environment.kafka_pods, TOPIC, f"s3a://{world.bucket}/{folder(name)}"]
    return world.app(name, NAMESPACE, main="script:tallying.py", args=args, spec=groups)


def tallies(world: World, app: str) -> dict[int, int]:
    """Return how many numbers an application had tallied after each batch that it wrote."""
    listed = world.s3.get_paginator("list_objects_v2").paginate(Bucket=world.bucket, Prefix=f"{folder(app)}/")
    keys = [o["Key"] for page in listed for o in page.get("Contents", [])]
    written = {key.split("/")[-2] for key in keys if key.endswith("/_SUCCESS")}
    found = dict.fromkeys(map(int, written), 0)
    # What is not written to its end still moves about.
    for key in (key for key in keys if "/part-" in key and key.split("/")[-2] in written):
        found[int(key.split("/")[-2])] += sum(json.loads(line)["count"] for line in world.read(key).splitlines())
    return found


def await_tally(world: World, app: str, numbers: int) -> dict[int, int]:
    """Return an application's tallies once they hold so many numbers."""

    def probe() -> dict[int, int]:
        seen = tallies(world, app)
        assert max(seen.values(), default=0) >= numbers, seen
        return seen

    return wait_for(f"{app} to tally {numbers} numbers", probe, timeout=600, interval=2)


def scheduled(world: World, app: str) -> list[dict[str, Any]]:
    """Return the snapshots of an application's schedule, the oldest first."""
    selector = f"tidegate.dev/scheduled=true,tidegate.dev/app={app}"
    found = world.kubectl.list("snap", NAMESPACE, selector)
    return sorted(found, key=lambda snapshot: snapshot["metadata"]["creationTimestamp"])


def verified(world: World, app: str) -> str | None:
    """Return the oldest snapshot of an application's schedule that was found to be whole."""
    for snapshot in scheduled(world, app):
        conditions = snapshot.get("status", {}).get("conditions", [])
        if any(c["type"] == "Verified" and c["status"] == "True" for c in conditions):
            return str(snapshot["metadata"]["name"])
    return None


def test_a_schedule_keeps_the_newest_and_the_end_of_an_application_is_imported_and_gone_on_from(
    world: World, topic: str
) -> None:
    world.make_namespace(NAMESPACE)
    send(world, 0, BEFORE)
    snapshots = {"every": "1m", "keep": {"last": 1}, "verify": True, "onDelete": "Take"}
    world.kubectl.apply(tallying(world, "steady", snapshots=snapshots))
    await_tally(world, "steady", BEFORE)

    # Which one: if the first came before all numbers were tallied, another takes its place, verified or not.
    earliest = wait_for("a verified one of the schedule", partial(verified, world, "steady"), timeout=600, interval=2)
    # Without new numbers the next ones would be the same; with some, the next takes its place.
    send(world, BEFORE, AFTER)
    await_tally(world, "steady", BEFORE + AFTER)

    def replaced() -> bool:
        names = [snapshot["metadata"]["name"] for snapshot in scheduled(world, "steady")]
        assert names, "none is there"
        return earliest not in names

    wait_for("the next one in its place", replaced, timeout=600, interval=2)

    uid = world.get_app("steady", NAMESPACE)["metadata"]["uid"]
    send(world, BEFORE + AFTER, AFTER)
    await_tally(world, "steady", BEFORE + 2 * AFTER)
    world.kubectl.delete("sapp", "steady", NAMESPACE)
    wait_for("the application to be gone", lambda: world.kubectl.get("sapp", "steady", NAMESPACE) is None, timeout=600)
    name = f"steady-last-{uid.replace('-', '')[:8]}"
    last = world.kubectl.get("snap", name, NAMESPACE)
    assert last is not None
    assert (last["status"]["phase"], last["status"]["batch"]) == ("Ready", max(tallies(world, "steady")))

    # The resource goes, the files stay, and are imported by their address.
    world.kubectl.run("delete", "snap", name, "-n", NAMESPACE, "--timeout=300s", timeout=310)
    known = last["status"]["storage"]
    place = {key: known[key] for key in ("endpoint", "region", "pathStyleAccess") if key in known}
    secret = {"credentialsSecret": {"name": known["credentialsSecret"]}}
    spec = {"uri": last["status"]["manifest"]["uri"], "storage": {**place, **secret}}
    metadata = {"name": "imported", "namespace": NAMESPACE}
    resource = {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
    world.kubectl.apply(resource)
    world.kubectl.run("wait", "snap/imported", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=300s", timeout=310)
    world.kubectl.apply(tallying(world, "onward", startFrom={"snapshot": {"name": "imported"}}))
    send(world, BEFORE + 2 * AFTER, AFTER)
    onward = await_tally(world, "onward", BEFORE + 3 * AFTER)
    assert (min(onward), max(onward.values())) == (last["status"]["batch"] + 1, BEFORE + 3 * AFTER)
