"""What an application says of a storage that is not as it left it, on a cluster; and that it continues once it is.

A driver that finds something missing, or something that is not the application's, ends without a write. Once the
storage is as it was, the application continues.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tidegate_testing.named_reasons import Said, await_reasons
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import PREFIX, World

pytestmark = pytest.mark.long  # tests/integration/spark_runtime/test_storage.py has most of it, in a process

NAMESPACE, NAME, QUERY = f"{PREFIX}-refused", "moved", "counting"
GENEROUS = 600.0
FIRST: dict[str, Said] = {
    "newer": Said("NewerFormat", ("app.json cannot be read", "its format is 99", "use a newer Tidegate")),
    "ownerless": Said("ClaimDamaged", ("app.json is missing or damaged", "whose they are")),
    "adopting": Said("NothingToAdopt", ("spec.startFrom.adopt is true, and there is nothing in",)),
    "unanswered": Said("StorageUnavailable", ("spec.storage.endpoint",)),
    "noted": Said("NotesDamaged", ("names/unnamed-1.json", ".queryName(")),
}
"""Of applications that never ran."""
ODD_STORES = {
    "throttling": Said("StorageThrottled", ("spec.storage.uri", "SlowDown (HTTP 503)")),
    "expired": Said("CredentialsExpired", ("spec.storage.credentialsSecretRef",)),
    "careless": Said("StorageUnsuitable", ("ignores If-None-Match and If-Match",)),
}
"""By what is odd about the store, which tests/e2e/scripts/odd_store.py is told."""


@pytest.fixture(scope="module")
def namespace(world: World) -> Iterator[str]:
    world.make_namespace(NAMESPACE)
    yield NAMESPACE
    world.delete_apps(NAMESPACE)


def put(world: World, app: str, key: str, content: object) -> None:
    world.s3.put_object(Bucket=world.bucket, Key=f"apps/{NAMESPACE}/{app}/{key}", Body=json.dumps(content).encode())


def test_an_application_says_what_it_finds_in_a_storage_that_it_cannot_start_with(world: World, namespace: str) -> None:
    put(world, "newer", "app.json", {"version": 99})
    put(world, "ownerless", "lineages/1/counting/metadata", {"id": "of-somebody"})
    put(world, "noted", "names/unnamed-1.json", [])
    unanswered = {"storage": {"endpoint": "http://127.0.0.1:9"}}
    specs: dict[str, dict[str, Any]] = {"adopting": {"startFrom": {"adopt": True}}, "unanswered": unanswered}
    before = {app: contents(world, app) for app in ("newer", "ownerless")}
    for app in FIRST:
        script, args = ("by_location.py", ["s3a://lake/orders"]) if app == "noted" else ("counting.py", [])
        world.kubectl.apply(world.app(app, namespace, main=f"script:{script}", args=args, spec=specs.get(app, {})))
    await_reasons(world, namespace, FIRST, timeout=GENEROUS)
    # What is somebody's, or a newer version's, is as it was.
    assert {app: without_logs(contents(world, app)) for app in before} == before
    assert world.operator_crashes() == []
    world.delete_apps(namespace)


def test_a_store_that_does_not_do_what_it_is_asked_is_named_with_what_it_lacks(world: World, namespace: str) -> None:
    for way in ODD_STORES:
        world.kubectl.apply(world.somebodys_pod(way, namespace, ["python3", "/opt/scripts/odd_store.py", way]))
    for way in ODD_STORES:

        def address(pod: str = way) -> str:
            found = world.kubectl.get("pod", pod, namespace)
            assert found is not None
            assert found["status"].get("phase") == "Running", found["status"]
            return str(found["status"]["podIP"])

        endpoint = f"http://{wait_for(f'the store that is {way}', address, GENEROUS)}:9000"
        storage = {**world.storage, "endpoint": endpoint}
        world.kubectl.apply(world.app(way, namespace, main="script:counting.py", spec={"storage": storage}))
    await_reasons(world, namespace, ODD_STORES, timeout=GENEROUS)
    world.delete_apps(namespace)
    world.kubectl.run("delete", "pods", *ODD_STORES, "-n", namespace)


def contents(world: World, app: str) -> dict[str, bytes]:
    """Return an application's objects."""
    keys = world.keys(app, NAMESPACE)
    return {key: world.s3.get_object(Bucket=world.bucket, Key=key)["Body"].read() for key in keys}


def without_logs(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    return {key: body for key, body in objects.items() if "/logs/" not in key}


@dataclass(frozen=True)
class Moved:
    """An application that has run, is suspended, and whose storage somebody changes meanwhile."""

    world: World
    left: Mapping[str, bytes]
    """Its objects as it left them."""

    @property
    def root(self) -> str:
        return f"apps/{NAMESPACE}/{NAME}"

    def remove(self, *parts: str) -> None:
        """Remove the objects whose keys have one of these parts."""
        gone = [key for key in self.left if any(part in key for part in parts)]
        assert gone, f"nothing has {parts} of {sorted(self.left)}"
        for key in gone:
            self.world.s3.delete_object(Bucket=self.world.bucket, Key=key)

    def give_back(self) -> None:
        """Have the storage as the application left it."""
        for key, body in self.left.items():
            self.world.s3.put_object(Bucket=self.world.bucket, Key=key, Body=body)

    def patch(self, **spec: Any) -> None:
        self.world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": spec})

    def suspended(self) -> None:
        self.patch(suspend=True)

        def is_suspended() -> bool:
            phase = self.world.get_app(NAME, NAMESPACE)["status"]["phase"]
            assert phase == "Suspended", phase
            return True

        wait_for("Suspended", is_suspended, GENEROUS)

    def says(self, reason: str, *words: str) -> None:
        """Resume, and suspend again once the application has said why it does not continue."""
        self.patch(suspend=False)
        await_reasons(self.world, NAMESPACE, {NAME: Said(reason, words)}, timeout=GENEROUS)
        self.suspended()

    def runs_beyond(self, batch: int) -> int:
        """Resume, and return the batch that the status has once that is beyond another."""
        self.patch(suspend=False)

        def runs() -> int:
            # It may have failed for good before, and be about to start again.
            status = self.world.get_app(NAME, NAMESPACE).get("status", {})
            assert (status.get("phase"), status.get("batch", -1) > batch) == ("Running", True), status
            return int(status["batch"])

        return wait_for(f"a batch after {batch}", runs, GENEROUS)

    def newest(self) -> int:
        """Return the last committed batch of what the application left."""
        return max(int(key.rpartition("/")[2]) for key in self.left if f"/{QUERY}/commits/" in key)


@pytest.fixture(scope="module")
def moved(world: World, namespace: str) -> Moved:
    world.kubectl.apply(world.app(NAME, namespace, main="script:counting.py"))
    made = Moved(world, {})
    made.runs_beyond(2)
    made.suspended()
    return Moved(world, without_logs(contents(world, NAME)))


def test_a_storage_without_what_the_application_committed_is_not_continued_with(moved: Moved) -> None:
    newest = moved.newest()
    moved.remove(f"/{QUERY}/commits/{newest}", f"/{QUERY}/offsets/{newest}")
    moved.says("StorageOlder", "is an older copy", f"has committed batch {newest}", "spec.storage.endpoint")
    moved.remove(moved.root)
    moved.says("StorageEmpty", "has no state of this application", "is not started empty")
    moved.give_back()
    moved.remove("/state/")
    moved.says("CheckpointFileMissing", f"nothing is below lineages/1/{QUERY}/state/0/")
    moved.give_back()
    moved.remove(f"/{QUERY}/metadata")
    moved.says("CheckpointFileMissing", "the metadata file is missing")
    moved.give_back()
    assert moved.runs_beyond(newest) > newest
    assert "recentFailureTimes" not in moved.world.status(NAME, NAMESPACE).get("restarts", {})


def test_a_lineage_that_is_to_start_with_nothing_is_not_started_where_there_is_something(moved: Moved) -> None:
    newest = moved.runs_beyond(-1)
    put(moved.world, NAME, f"lineages/2/{QUERY}/metadata", {"id": "of-somebody"})
    confirmed = {"annotations": {"tidegate.dev/abandon-state": "1"}}
    moved.world.kubectl.patch("sapp", NAME, NAMESPACE, {"metadata": confirmed})
    moved.patch(upgrade={"mode": "Stateless"}, restartNonce=1)

    def is_rolled_back() -> dict[str, Any]:
        status = moved.world.status(NAME, NAMESPACE)
        upgrade = dict(status.get("upgrade", {}))
        assert (upgrade.get("phase"), status["phase"]) == ("RolledBack", "Running"), status
        return upgrade

    upgrade = wait_for("the version to be rolled back", is_rolled_back, GENEROUS)
    assert upgrade["reason"] == "LineageNotEmpty", upgrade
    assert "Lineage 2 is to start with nothing" in upgrade["message"], upgrade
    assert "there are files below" in upgrade["message"], upgrade
    # It has what it had.
    assert moved.runs_beyond(newest) > newest


def test_a_driver_whose_fence_was_taken_says_that_it_runs_elsewhere_and_continues_after_a_restart_by_hand(
    moved: Moved,
) -> None:
    moved.runs_beyond(0)
    status = moved.world.status(NAME, NAMESPACE)
    uid = moved.world.get_app(NAME, NAMESPACE)["metadata"]["uid"]
    key = f"{moved.root}/fence.json"
    fence = {**json.loads(moved.world.read(key)), "uid": uid, "epoch": status["epoch"] + 5}
    put(moved.world, NAME, "fence.json", fence)
    await_reasons(moved.world, NAMESPACE, {NAME: Said("Fenced", (f"A driver of epoch {fence['epoch']}",))}, GENEROUS)
    assert moved.world.get_app(NAME, NAMESPACE)["status"]["phase"] == "Failed"
    moved.patch(upgrade={"mode": "Snapshot"}, restartNonce=2)
    moved.runs_beyond(status["batch"])


def test_a_fork_of_a_snapshot_whose_files_are_gone_says_so_and_starts_nothing(moved: Moved) -> None:
    world = moved.world
    moved.runs_beyond(0)
    metadata = {"name": "emptied", "namespace": NAMESPACE}
    snapshot = {"appRef": {"name": NAME}, "deletionPolicy": "Retain"}
    world.kubectl.apply(
        {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": snapshot}
    )

    def is_ready() -> bool:
        found = world.kubectl.get("snap", "emptied", NAMESPACE)
        assert found is not None
        assert world.kubectl.condition(found, "Ready").get("status") == "True", found.get("status")
        return True

    wait_for("the snapshot", is_ready, GENEROUS)
    manifests = [key for key in world.keys(NAME, NAMESPACE) if "/snapshots/" in key and "catalog" not in key]
    assert manifests
    for key in manifests:
        world.s3.delete_object(Bucket=world.bucket, Key=key)
    fork = {"startFrom": {"snapshotRef": {"name": "emptied"}}}
    world.kubectl.apply(world.app("fork", NAMESPACE, main="script:counting.py", spec=fork))
    await_reasons(world, NAMESPACE, {"fork": Said("SnapshotUnusable", ("cannot start from snapshot",))}, GENEROUS)
    assert [key for key in world.keys("fork", NAMESPACE) if "/lineages/" in key] == []
