"""The status is removed in every phase of an upgrade, a rollback, a repartition and a fork, while data flow.

Beside the driver, which knows epoch and lineage, or with its pod gone as well, so that only the storage does; and a
backup tool creates the resource again, with another uid. The application goes on where it was: its tallies are those of
all numbers, each once, and it is in no earlier lineage.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from devcluster.kubeapi import RequestFailedError
from tidegate.api.streaming_app import UpgradePhase
from tidegate_testing.kills import kill_driver
from tidegate_testing.named_reasons import Said, await_reasons
from tidegate_testing.tally import Tallies, Tally, has_ended, tallies
from tidegate_testing.waiting import wait_for
from tidegate_testing.watching import Watch
from tidegate_testing.world import World

pytestmark = pytest.mark.long  # tests/scenario/events/losses.py has it at any moment, with simulated drivers

NAMESPACE = "tidegate-e2e-lost-statuses"
COPY = "tidegate-e2e-copied-bucket"
SMALL = {"requests": {"cpu": "200m", "memory": "1500Mi"}}
SPEC: dict[str, Any] = {
    "state": {"partitions": 4, "repartition": {"resources": SMALL}},
    "upgrade": {"stableBatches": 2},
}
AS_IT_WAS = {"mode": "Snapshot", "rollbackPolicy": "OnFailure", "rehearsal": None}
"""What an edit of these tests changes of `spec.upgrade`."""
WORK, MOST = 3, 5
"""Where the script's arguments have the seconds that each number takes, and the most numbers in a batch."""
GENEROUS = 900.0


@pytest.fixture(scope="module")
def made(world: World) -> Iterator[Tallies]:
    with tallies(world, NAMESPACE, "tidegate-e2e-numbers-of-lost-statuses", SPEC) as them:
        yield them


@pytest.fixture
def numbers(made: Tallies) -> Tally:
    app = made.one()
    app.begin()
    return app


# --- edits that lead to a phase ---------------------------------------------------------------------------------------


def edit(app: Tally, *, work: str = "0.0", **upgrade: Any) -> None:
    """Have another version, which tallies the same, and `spec.upgrade` as it was but for some fields."""
    args = list(app.world.get_app(app.name, NAMESPACE)["spec"]["application"]["args"])
    args[WORK], args[MOST] = work, str(int(args[MOST]) + 1)
    app.patch({"application": {"args": args}, "upgrade": {**AS_IT_WAS, **upgrade}})


rehearsed = partial(edit, rehearsal={"batches": 1, "timeoutSeconds": 600, "resources": SMALL})
broken = partial(edit, work="none")  # the script raises at once
broken_for_good = partial(edit, work="none", rollbackPolicy="Never")
without_state = partial(edit, mode="Stateless")  # nobody has confirmed it


def divided(app: Tally) -> None:
    """Have its state repartitioned, into a number that neither it nor the spec has: a lost status keeps the state's."""
    known = wait_for("the number of partitions", lambda: app.status().get("statePartitions"), GENEROUS, interval=1)
    asked = app.world.get_app(app.name, NAMESPACE)["spec"]["state"]["partitions"]
    app.patch({"state": {"partitions": next(number for number in (4, 8, 2) if number not in (known, asked))}})


def withdrawn(app: Tally) -> None:
    """Have an edit refused, and take it back."""
    spec, before = app.world.get_app(app.name, NAMESPACE)["spec"], app.upgrade_number()
    without_state(app)
    app.await_upgrade("Refused", before)
    app.patch({"application": {"args": spec["application"]["args"]}, "upgrade": AS_IT_WAS})


WAYS: dict[UpgradePhase, tuple[Callable[[Tally], None], ...]] = {
    UpgradePhase.COPYING: (edit, divided),
    UpgradePhase.REHEARSING: (rehearsed,),
    UpgradePhase.STOPPING: (edit, divided),
    UpgradePhase.REPARTITIONING: (divided,),
    UpgradePhase.GATE: (edit, divided),
    UpgradePhase.COMPLETED: (edit, divided),
    UpgradePhase.FAILED: (broken_for_good,),
    UpgradePhase.ROLLING_BACK: (broken,),
    UpgradePhase.ROLLED_BACK: (broken,),
    UpgradePhase.REFUSED: (without_state,),
    UpgradePhase.WITHDRAWN: (withdrawn,),
}
CASES = [
    pytest.param(phase, way, id=f"{phase.value} of a repartition" if way is divided else phase.value)
    for phase in UpgradePhase
    for way in WAYS[phase]
]


# --- the loss ---------------------------------------------------------------------------------------------------------


def phase_of_upgrade(before: int, app: dict[str, Any]) -> str:
    """Return the phase of an upgrade after that number."""
    upgrade = app.get("status", {}).get("upgrade", {})
    return str(upgrade["phase"]) if upgrade.get("number", 0) > before else ""


def phase_of_app(app: dict[str, Any]) -> str:
    return str(app.get("status", {}).get("phase", ""))


def lose_status(
    world: World, phase: str, phase_of: Callable[[dict[str, Any]], str], app: dict[str, Any]
) -> dict[str, Any]:
    """Remove the status of an application that is in a phase; return what it was, empty if it went on meanwhile."""
    if phase_of(app) != phase:
        return {}
    metadata, status = app["metadata"], dict(app["status"])
    change = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": dict.fromkeys(status)}
    try:
        world.kubectl.api.patch("sapp", metadata["name"], NAMESPACE, change, "status")
    except RequestFailedError as failed:
        if failed.reason != "Conflict":
            raise
        return {}
    return status


def stored_lineage(app: Tally) -> int:
    claim = json.loads(app.world.read(f"apps/{NAMESPACE}/{app.name}/app.json"))
    return int(claim["lineage"])


def await_rest(app: Tally, after: int = -1) -> dict[str, Any]:
    """Return the status once it knows of a batch after that one, in the stored lineage, and nothing is tested."""

    def is_at_rest() -> dict[str, Any]:
        # It may have failed for good before, and be about to start again.
        status = dict(app.world.get_app(app.name, NAMESPACE).get("status", {}))
        upgrade = status.get("upgrade")
        assert (status.get("phase"), "lastStable" in status) == ("Running", True), status
        assert upgrade is None or has_ended(upgrade, 0), status
        assert status["lineage"] == stored_lineage(app), status
        assert status.get("batch", -1) > after, status
        return status

    return wait_for("the application to be at rest", is_at_rest, GENEROUS, interval=1)


def assert_nothing_is_left_of_it(app: Tally) -> None:
    for role in ("rehearsal", "repartition"):
        selector = f"tidegate.dev/role={role},tidegate.dev/app={app.name}"
        listed = partial(app.world.kubectl.list, "pods", NAMESPACE, selector)
        wait_for(f"no {role} pod", partial(is_empty, listed), timeout=300, interval=2)


def is_empty(listed: Callable[[], list[dict[str, Any]]]) -> bool:
    return listed() == []


# --- stories ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("and_driver", [False, True], ids=["the status alone", "the status and the driver"])
@pytest.mark.parametrize(("phase", "way"), CASES)
def test_the_status_is_removed_in_a_phase_of_an_upgrade_and_no_number_is_lost_or_tallied_twice(
    world: World, numbers: Tally, phase: UpgradePhase, way: Callable[[Tally], None], and_driver: bool
) -> None:
    before = numbers.upgrade_number()
    with Watch(world.kubectl, "sapp", NAMESPACE, name=numbers.name) as versions:
        way(numbers)
        lose = partial(lose_status, world, phase.value, partial(phase_of_upgrade, before))
        versions.until(f"the status to be removed in phase {phase.value}", lose, GENEROUS)
    lineage = stored_lineage(numbers)
    if and_driver:
        kill_driver(world, NAMESPACE, numbers.name)
    if way in (broken, broken_for_good, without_state):
        # Which version was stable is in the status alone: the spec's is the one that there is.
        edit(numbers)
    found = await_rest(numbers)
    assert found["lineage"] >= lineage, found
    world.await_events(numbers.name, NAMESPACE, "EpochAdopted")
    numbers.await_all_tallied()
    assert_nothing_is_left_of_it(numbers)


@pytest.mark.parametrize("and_driver", [False, True], ids=["the status alone", "the status and the driver"])
@pytest.mark.parametrize("phase", ["Pending", "Starting", "Running"])
def test_the_status_of_a_fork_is_removed_and_it_goes_on_from_its_snapshot_and_without_it(
    world: World, numbers: Tally, phase: str, and_driver: bool
) -> None:
    snapshot = f"cut-{secrets.token_hex(3)}"
    start = {"startFrom": {"snapshotRef": {"name": snapshot}}}
    fork = Tally(world, NAMESPACE, numbers.topic, {**SPEC, **start})
    fork.flow = numbers.flow
    if phase != "Pending":
        take(world, numbers, snapshot)
    with Watch(world.kubectl, "sapp", NAMESPACE, name=fork.name) as versions:
        fork.apply()
        lose = partial(lose_status, world, phase, phase_of_app)
        versions.until(f"the fork's status to be removed in phase {phase}", lose, GENEROUS)
    if and_driver:
        kill_driver(world, NAMESPACE, fork.name)
    if phase == "Pending":
        take(world, numbers, snapshot)
    batch, lineage = await_rest(fork)["batch"], stored_lineage(fork)
    # Without its snapshot, its status and its driver, the storage still knows what it began with.
    world.kubectl.run("delete", "snap", snapshot, "-n", NAMESPACE, "--timeout=300s", timeout=310)
    world.kubectl.patch_status("sapp", fork.name, NAMESPACE, dict.fromkeys(fork.status()))
    kill_driver(world, NAMESPACE, fork.name)
    found = await_rest(fork, after=batch)
    assert found["lineage"] == lineage, found
    fork.await_all_tallied()
    numbers.await_all_tallied()
    world.kubectl.run("delete", "sapp", fork.name, "-n", NAMESPACE, "--timeout=300s", timeout=310)


def take(world: World, app: Tally, name: str) -> None:
    """Take a snapshot of an application, and wait until it is complete."""
    metadata = {"name": name, "namespace": NAMESPACE}
    spec = {"appRef": {"name": app.name}, "deletionPolicy": "Delete"}
    world.kubectl.apply(
        {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
    )

    def is_ready() -> bool:
        found = world.kubectl.get("snap", name, NAMESPACE)
        assert found is not None
        assert found.get("status", {}).get("phase") == "Ready", found.get("status")
        return True

    wait_for("the snapshot", is_ready, GENEROUS)


def test_what_a_backup_tool_creates_again_continues_when_it_adopts_also_in_a_copied_bucket(
    world: World, numbers: Tally
) -> None:
    """The recipe of docs/recipes.md, with a lineage that is not the first."""
    before = numbers.upgrade_number()
    divided(numbers)
    lineage = numbers.await_upgrade("Completed", before)["lineage"]
    backup = world.get_app(numbers.name, NAMESPACE)
    restored = {**backup, "metadata": {"name": numbers.name, "namespace": NAMESPACE}}
    del restored["status"]

    batch = deleted_after(numbers)
    world.kubectl.create(restored)
    await_reasons(world, NAMESPACE, {numbers.name: Said("StorageOwned", ("spec.startFrom.adopt",))}, GENEROUS)
    numbers.patch({"startFrom": {"adopt": True}})
    assert await_batch_after(numbers, batch)["lineage"] == lineage

    batch = deleted_after(numbers)
    world.make_bucket(COPY)
    for key in world.keys(numbers.name, NAMESPACE):
        world.s3.copy_object(Bucket=COPY, Key=key, CopySource={"Bucket": world.bucket, "Key": key})
    storage = {**backup["spec"]["storage"], "uri": f"s3://{COPY}/apps"}
    copied = {**restored["spec"], "storage": storage, "startFrom": {"adopt": True}}
    world.kubectl.create({**restored, "spec": copied})
    assert await_batch_after(numbers, batch)["lineage"] == lineage
    numbers.await_all_tallied()
    numbers.right = False  # it has another bucket than other tests expect


def deleted_after(app: Tally) -> int:
    """Delete an application, which keeps its storage; return the newest batch that was known by then."""
    batch = int(app.status()["batch"])
    app.world.kubectl.run("delete", "sapp", app.name, "-n", NAMESPACE, "--timeout=300s", timeout=310)
    return batch


def await_batch_after(app: Tally, batch: int) -> dict[str, Any]:
    """Return the status once the application runs and has committed a later batch."""

    def goes_on() -> dict[str, Any]:
        # It may have failed for good before, and be about to start again.
        status = dict(app.world.get_app(app.name, NAMESPACE).get("status", {}))
        assert (status.get("phase"), status.get("batch", -1) > batch) == ("Running", True), status
        return status

    return wait_for(f"a batch after {batch}", goes_on, GENEROUS, interval=1)
