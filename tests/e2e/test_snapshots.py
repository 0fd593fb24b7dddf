"""Snapshots of an application: by schedule, by hand and at its end; what goes on from them, exported and imported.

The application keeps the numbers of a topic. Another one, with another shape of state, starts from an export of it, or
one goes on from the snapshot of its end, imported. What each of them has kept is computed from the numbers.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer

from devcluster.demo.replay import create_topics, delete_topics
from tidegate_testing.waiting import CannotComeError, wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-snapshots"
TOPIC = "tidegate-e2e-kept-numbers"
PART = 400
"""Numbers that are sent at a time."""
SOME = 160
"""Of the first ones, when the first snapshot is taken: its state is not of all numbers that there are."""
EXPORT = {"format": "Parquet", "resources": {"requests": {"cpu": "100m", "memory": "1500Mi"}}, "timeoutSeconds": 600}


@dataclass
class Numbers:
    """The topic, and what applications have made of it."""

    world: World
    sent: int = 0

    def send(self, count: int = PART) -> None:
        """Have the topic hold so many more numbers, each confirmed."""
        brokers = self.world.environment.kafka_host
        producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all"})
        for number in range(self.sent, self.sent + count):
            producer.produce(TOPIC, key=str(number), value=str(number))
        assert producer.flush(60) == 0
        self.sent += count

    def keep(self, name: str, script: str, **groups: Any) -> None:
        """Apply an application that keeps them."""
        args = [self.world.environment.kafka_pods, TOPIC, f"s3a://{self.world.bucket}/{folder(name)}"]
        self.world.kubectl.apply(self.world.app(name, NAMESPACE, main=f"script:{script}", args=args, spec=groups))

    def await_kept(self, app: str, numbers: int) -> dict[int, dict[str, int]]:
        """Return what an application wrote last of each digit, once that is of so many numbers."""

        def probe() -> dict[int, dict[str, int]]:
            seen = self._latest(app)
            kept = sum(row["n"] for row in seen.values())
            if kept > self.sent:
                raise CannotComeError(f"{app} has {kept} numbers and {self.sent} were sent: {seen}")
            assert kept >= numbers, seen
            return seen

        return wait_for(f"{app} to have {numbers} numbers", probe, timeout=600, interval=2)

    def assert_all_kept(self, app: str) -> dict[int, dict[str, int]]:
        """Return what an application wrote last of each digit, once that is of every number; each counts once."""
        found = self.await_kept(app, self.sent)
        assert {digit: row["n"] for digit, row in found.items()} == {
            digit: len(range(digit, self.sent, 10)) for digit in range(10)
        }
        return found

    def batches(self, app: str) -> list[int]:
        """Return the batches that an application wrote to their end."""
        return sorted({int(key.split("/")[-2]) for key in self._keys(app) if key.endswith("/_SUCCESS")})

    def _keys(self, app: str) -> list[str]:
        pages = self.world.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.world.bucket, Prefix=f"{folder(app)}/"
        )
        return sorted(o["Key"] for page in pages for o in page.get("Contents", []))

    def _latest(self, app: str) -> dict[int, dict[str, int]]:
        keys = self._keys(app)
        # What is not written to its end still moves about.
        written = {key.split("/")[-2] for key in keys if key.endswith("/_SUCCESS")}
        found: dict[int, dict[str, int]] = {}
        for key in (key for key in keys if "/part-" in key and key.split("/")[-2] in written):
            for line in self.world.read(key).splitlines():
                row = json.loads(line)
                found[row["digit"]] = row
        return found


def folder(app: str) -> str:
    return f"output/{NAMESPACE}/{app}"


@pytest.fixture
def numbers(world: World) -> Iterator[Numbers]:
    brokers = world.environment.kafka_host
    world.make_namespace(NAMESPACE)
    delete_topics(brokers, [TOPIC])
    create_topics(brokers, {TOPIC: 2})
    yield Numbers(world)
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, [TOPIC])


def test_an_application_of_another_shape_starts_from_an_export_of_a_snapshot_of_one_that_runs_on(
    world: World, numbers: Numbers
) -> None:
    numbers.send()
    numbers.keep("original", "keeping.py")
    numbers.await_kept("original", SOME)
    take(world, "midway", {"appRef": {"name": "original"}})
    exported = export(world, "midway")
    numbers.assert_all_kept("original")
    assert world.get_app("original", NAMESPACE)["status"]["epoch"] == 1
    world.kubectl.delete("sapp", "original", NAMESPACE)
    numbers.keep("other-shape", "keeping_anew.py", startFrom={"exportedState": {"uri": exported["uri"]}})
    numbers.send()
    another_shape_has_it_all(numbers, "other-shape")


@pytest.mark.long  # tests/integration/test_snapshot_lifecycle.py has schedule, end and import without Spark
def test_a_schedule_goes_on_and_another_application_goes_on_from_the_snapshot_of_the_end(
    world: World, numbers: Numbers
) -> None:
    numbers.send()
    snapshots = {"intervalSeconds": 60, "retention": {"maxCount": 1}, "verify": True, "finalSnapshot": True}
    numbers.keep("steady", "keeping.py", snapshots=snapshots)
    earliest = wait_for("a verified one of the schedule", partial(verified, world, "steady"), timeout=600, interval=2)
    # Without new numbers the next ones would be the same; with some, the next takes its place.
    numbers.send()
    numbers.assert_all_kept("steady")
    wait_for("the next one in its place", partial(is_replaced, world, "steady", earliest), timeout=600, interval=2)
    assert world.get_app("steady", NAMESPACE)["status"]["epoch"] == 1

    numbers.send()
    numbers.assert_all_kept("steady")
    last = delete_and_keep_the_last(world, numbers, "steady")
    import_by_its_address(world, last, "imported")
    numbers.keep("onward", "keeping.py", startFrom={"snapshotRef": {"name": "imported"}})
    numbers.send()
    numbers.assert_all_kept("onward")
    assert min(numbers.batches("onward")) == last["batch"] + 1


def take(world: World, name: str, spec: dict[str, Any]) -> None:
    """Have a snapshot, and wait until it is Ready."""
    metadata = {"name": name, "namespace": NAMESPACE}
    world.kubectl.apply(
        {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
    )
    world.kubectl.run("wait", f"snap/{name}", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=300s", timeout=310)


def export(world: World, name: str) -> dict[str, Any]:
    """Have a snapshot's state exported, and return what its status says of that."""
    world.kubectl.patch("snap", name, NAMESPACE, {"spec": {"export": {**EXPORT, "nonce": 1}}})

    def probe() -> dict[str, Any]:
        found = world.kubectl.get("snap", name, NAMESPACE)
        assert found is not None
        said: dict[str, Any] = found["status"].get("export", {})
        if said.get("phase") == "Failed":
            raise CannotComeError(f"the export failed: {said}")
        assert (said.get("nonce"), said.get("phase")) == (1, "Completed"), found["status"]
        return said

    said = wait_for(f"the export of {name}", probe, timeout=600, interval=2)
    assert said["tables"] == 3
    wait = ("wait", f"snap/{name}", "-n", NAMESPACE, "--for=condition=Exported", "--timeout=120s")
    world.kubectl.run(*wait, timeout=130)
    wait_for("its pods to be gone", lambda: not export_pods(world), timeout=300, interval=1)
    return said


def export_pods(world: World) -> list[str]:
    """Return the names of the pods that export."""
    names = [pod["metadata"]["name"] for pod in world.kubectl.list("pods", NAMESPACE)]
    return [name for name in names if "-export-" in name]


def another_shape_has_it_all(numbers: Numbers, app: str) -> None:
    """No input was lost or repeated, and some of what is kept came with the export, in another type."""
    for digit, row in numbers.assert_all_kept(app).items():
        expected = range(digit, numbers.sent, 10)
        assert (row["sum"], row["hundreds"]) == (sum(expected), len(expected)), row
        assert 0 < row["old"] < row["n"]


def scheduled(world: World, app: str) -> list[dict[str, Any]]:
    """Return the snapshots of an application's schedule, the oldest first."""
    selector = f"tidegate.dev/scheduled=true,tidegate.dev/app={app}"
    found = world.kubectl.list("snap", NAMESPACE, selector)
    return sorted(found, key=lambda snapshot: snapshot["metadata"]["creationTimestamp"])


def verified(world: World, app: str) -> str:
    """Return the oldest snapshot of an application's schedule that was found to be whole; empty if there is none."""
    for snapshot in scheduled(world, app):
        conditions = snapshot.get("status", {}).get("conditions", [])
        if any(c["type"] == "Verified" and c["status"] == "True" for c in conditions):
            return str(snapshot["metadata"]["name"])
    return ""


def is_replaced(world: World, app: str, earliest: str) -> bool:
    """Return whether another snapshot of its schedule took the place of the earliest one."""
    names = [snapshot["metadata"]["name"] for snapshot in scheduled(world, app)]
    assert names, "none is there"
    return earliest not in names


def delete_and_keep_the_last(world: World, numbers: Numbers, app: str) -> dict[str, Any]:
    """Delete an application; return the status of the snapshot of its end, whose resource then goes and files stay."""
    uid = world.get_app(app, NAMESPACE)["metadata"]["uid"]
    world.kubectl.delete("sapp", app, NAMESPACE)
    wait_for("the application to be gone", lambda: world.kubectl.get("sapp", app, NAMESPACE) is None, timeout=600)
    name = f"{app}-last-{uid.replace('-', '')[:8]}"
    last = world.kubectl.get("snap", name, NAMESPACE)
    assert last is not None
    assert (last["status"]["phase"], last["status"]["batch"]) == ("Ready", max(numbers.batches(app)))
    world.kubectl.run("delete", "snap", name, "-n", NAMESPACE, "--timeout=300s", timeout=310)
    status: dict[str, Any] = last["status"]
    return status


def import_by_its_address(world: World, status: dict[str, Any], name: str) -> None:
    """Have a resource for files that are there."""
    known = status["storage"]
    place = {key: known[key] for key in ("endpoint", "region", "pathStyleAccess") if key in known}
    secret = {"credentialsSecretRef": {"name": known["credentialsSecretName"]}}
    take(world, name, {"uri": status["manifest"]["uri"], "storage": {**place, **secret}})
