"""What plans about snapshots do to a cluster, and how the reconciler goes on. The API server is a dictionary."""

import dataclasses
import datetime
import json
from typing import Any

import msgspec
import pytest

from tidegate.access.act import AccessManager
from tidegate.agent.client import Unanswered
from tidegate.api.stream_snapshot import ExportPhase, ExportSpec, SnapshotPhase, StreamSnapshot
from tidegate.api.streaming_app import DeletionPolicy, Phase
from tidegate.cache.index import Index
from tidegate.cache.kinds.resource_cache import UnreadableResource
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.process_state import TimedReport
from tidegate.engine.events import EventPublisher
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import Failure, Forbidden, Invalid, Unavailable
from tidegate.kube.paths import item
from tidegate.snapshots.act import SnapshotActionExecutor
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.pods_at_work import SnapshotPods
from tidegate.snapshots.reconcile import SnapshotReconciler
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import SNAPSHOT_FINALIZER
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.limit_ranges import Floored
from tidegate_testing.observations import NOW, PLATFORM, app_with, launched, running_driver
from tidegate_testing.snapshot_observations import (
    APP,
    ID,
    TIME,
    agent,
    begun,
    deleted,
    pod,
    pod_that_said,
    ready_snapshot,
    report,
    snapshot,
)

KEY, ORDERS = ("shop", "nightly"), ("shop", "orders")
PATH = item("StreamSnapshot", *KEY)
"""Where the resource is."""
TAKE, DISPOSE = f"/api/v1/namespaces/shop/pods/{ID}-take", f"/api/v1/namespaces/shop/pods/{ID}-dispose"
ACCOUNT = "/api/v1/namespaces/shop/serviceaccounts/tidegate-driver-orders"


class Agent:
    """Takes orders, unless it is told not to."""

    def __init__(self) -> None:
        self.orders: list[SnapshotOrders] = []
        self.refusal = ""

    async def order_snapshots(self, key: Key, pod: object, orders: SnapshotOrders) -> Unanswered | None:
        if self.refusal:
            return Unanswered(self.refusal)
        self.orders.append(orders)
        return None


class Poller:
    """Counts who is to be asked soon."""

    def __init__(self) -> None:
        self.hurried: list[Key] = []

    def hurry(self, key: Key) -> None:
        self.hurried.append(key)


class World:
    """A cluster with one snapshot, and an operator that looks at it."""

    def __init__(self, of: StreamSnapshot | None = None, api: ApiServer | None = None) -> None:
        self.api, self.index, self.agent = api or ApiServer(), Index(), Agent()
        self.poller, self.metrics = Poller(), OperatorMetrics()
        self.woken: list[Key] = []
        self.beside: list[StreamSnapshot] = []
        client, agents, poller = self.api, self.agent, self.poller
        nothing: Any = client
        access, events = AccessManager(nothing, self.index), EventPublisher(nothing)
        actor = SnapshotActionExecutor(nothing, agents, self.index, access, events, self.metrics)  # type: ignore[arg-type]
        self.reconciler = SnapshotReconciler(
            self.index,
            PLATFORM,
            actor,
            poller,  # type: ignore[arg-type]
            SnapshotPods(self.index, agents, self.woken.append),  # type: ignore[arg-type]
            self.metrics.snapshots,
            InvalidResourceReporter(nothing, events),
            self.woken.append,
            self.beside.append,
            clock=lambda: NOW,
            steady=lambda: NOW,
        )
        self.api.keep(PATH, of or snapshot())
        self.index.of(SnapshotIndex).put(of or snapshot())

    def runs(self, *reports: SnapshotReport) -> None:
        driver = running_driver(APP)
        self.index.put_app(APP)
        self.index.put_pod(driver)
        self.index.reports[ORDERS] = TimedReport(agent(*reports), NOW, driver.uid, driver.restarts)

    async def check(self) -> float | None:
        return await self.reconciler.reconcile(KEY)

    async def settle(self) -> None:
        for _ in range(4):
            await self.check()

    def stored(self) -> StreamSnapshot:
        return msgspec.convert(self.api.objects[PATH], StreamSnapshot)

    def series(self) -> dict[tuple[str, ...], float]:
        families = [f for f in self.metrics.registry.collect() if f.name.startswith("tidegate_snapshots")]
        return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


async def test_an_order_is_given_once_the_resource_says_what_is_ordered() -> None:
    world = World()
    world.runs()
    await world.check()
    assert [order.id for orders in world.agent.orders for order in orders.take] == [ID]
    assert world.stored().metadata.finalizers == (SNAPSHOT_FINALIZER,)
    assert world.stored().status.snapshot_id == ID
    assert (world.poller.hurried, ORDERS in world.woken) == ([ORDERS], True)
    await world.check()
    assert len(world.agent.orders) == 1


async def test_what_the_agent_tells_is_written_and_shown() -> None:
    world = World()
    world.runs()
    await world.check()
    world.runs(report(SnapshotState.READY))
    await world.settle()
    assert (world.stored().status.phase, world.stored().status.batch) == (SnapshotPhase.READY, 7)
    assert world.series() == {
        ("tidegate_snapshots", "shop", "orders", "Ready"): 1.0,
        ("tidegate_snapshots_newest_timestamp_seconds", "shop", "orders"): NOW,
        ("tidegate_snapshots_newest_bytes", "shop", "orders"): 2048.0,
    }


async def test_an_agent_that_does_not_take_the_order_is_not_asked_again_at_once() -> None:
    world = World()
    world.runs()
    world.agent.refusal = "HTTP 404"
    await world.settle()
    assert "HTTP 404" in world.stored().status.conditions[2].message


async def test_a_pod_takes_it_as_its_application_and_has_no_token() -> None:
    world = World()
    world.index.put_app(launched(app_with(), phase=Phase.SUSPENDED))
    await world.settle()
    assert ACCOUNT in world.api.objects
    assert runs_as(world, TAKE) == ("tidegate-driver-orders", False)


async def test_a_pod_of_an_application_that_is_gone_runs_as_the_namespaces_default_and_has_no_token() -> None:
    world = World(deleted(ready_snapshot(), DeletionPolicy.DELETE))
    await world.settle()
    assert ACCOUNT not in world.api.objects
    assert runs_as(world, DISPOSE) == ("default", False)


def runs_as(world: World, pod: str) -> tuple[str, bool]:
    spec = world.api.objects[pod]["spec"]
    return spec["serviceAccountName"], spec["automountServiceAccountToken"]


async def test_a_refused_pod_is_told() -> None:
    world = World(deleted(ready_snapshot(), DeletionPolicy.DELETE))
    world.api.refusing["/api/v1/namespaces/shop/pods"] = Forbidden("quota")
    await world.settle()
    assert "quota" in world.stored().status.conditions[0].message
    assert DISPOSE not in world.api.objects


async def test_a_disposal_by_a_pod_leaves_nothing_behind() -> None:
    world = World(deleted(ready_snapshot(), DeletionPolicy.DELETE))
    await world.settle()
    assert DISPOSE in world.api.objects
    world.index.put_pod(
        pod_that_said(report(SnapshotState.DISPOSED), disposing=True, resource_version="99", uid="uid-9")
    )
    world.api.objects[DISPOSE]["metadata"]["uid"] = "uid-9"
    await world.settle()
    assert world.stored().metadata.finalizers == ()
    assert DISPOSE not in world.api.objects


@pytest.mark.parametrize("labels", [{}, {"tidegate.dev/snapshot": ID, "app.kubernetes.io/managed-by": "tidegate"}])
async def test_a_pod_of_the_name_that_is_not_the_snapshots_is_named_and_stays(labels: dict[str, str]) -> None:
    world = World(deleted(ready_snapshot(), DeletionPolicy.DELETE))
    world.api.put(DISPOSE, {"metadata": {"name": DISPOSE.rpartition("/")[2], "namespace": "shop", "labels": labels}})
    await world.settle()
    (condition,) = [c for c in world.stored().status.conditions if c.status == "True"]
    assert (condition.reason, "does not belong to this snapshot" in condition.message) == ("PodNameTaken", True)
    assert DISPOSE in world.api.objects


async def test_a_pod_of_the_snapshot_that_lost_its_labels_is_made_anew() -> None:
    world = World(deleted(ready_snapshot(), DeletionPolicy.DELETE))
    await world.settle()
    lost = world.api.objects[DISPOSE]
    lost["metadata"]["labels"] = {}
    world.index.remove_pod(world.index.pods(ORDERS)[0])
    await world.settle()
    assert world.api.objects[DISPOSE]["metadata"]["labels"] != {}
    assert world.api.objects[DISPOSE] is not lost


async def test_a_snapshot_of_nobody_waits_and_changes_nothing() -> None:
    world = World()
    await world.settle()
    assert [path for path in world.api.objects if "/events/" not in path] == [PATH]
    assert world.series() == {("tidegate_snapshots", "shop", "orders", "Pending"): 1.0}


async def test_the_series_of_a_snapshot_that_is_gone_are_gone() -> None:
    world = World()
    world.runs(report(SnapshotState.FAILED))
    await world.settle()
    world.runs(report(SnapshotState.FAILED))
    await world.settle()
    assert world.series()["tidegate_snapshots_failed_total", "shop", "orders", "InternalError"] == 1.0
    world.index.of(SnapshotIndex).remove(KEY, snapshot().metadata.uid)
    await world.check()
    assert world.series() == {}


async def test_a_write_that_meets_another_version_is_decided_anew() -> None:
    world = World()
    world.runs()
    changed = json.loads(msgspec.json.encode(snapshot()))
    changed["metadata"]["resourceVersion"] = "77"
    world.api.objects[PATH] = changed
    await world.settle()
    assert world.stored().status.snapshot_id == ID


# --- what cannot be read ---


def unreadable(**metadata: Any) -> UnreadableResource:
    return UnreadableResource(snapshot(begun(), **metadata).metadata, "spec.deletionPolicy: Invalid enum value 'Shred'")


async def test_one_that_can_not_be_read_says_so_once() -> None:
    world = World()
    world.index.of(SnapshotIndex).put(unreadable(resource_version="21"))
    world.api.keep(PATH, snapshot(resource_version="21"))
    await world.settle()
    (event,) = [path for path in world.api.objects if "/events/" in path]
    assert world.api.objects[event]["reason"] == "InvalidSpec"
    stalled = world.stored().status.condition("Stalled")
    assert stalled is not None
    assert (stalled.status, "Shred" in stalled.message) == ("True", True)


async def test_one_that_can_not_be_read_goes_and_leaves_its_files() -> None:
    world = World()
    world.index.of(SnapshotIndex).put(unreadable(resource_version="21", deletion_timestamp=TIME))
    world.api.keep(PATH, snapshot(begun(), resource_version="21"))
    await world.check()
    assert world.stored().metadata.finalizers == ()
    (event,) = [path for path in world.api.objects if "/events/" in path]
    assert world.api.objects[event]["reason"] == "SnapshotRetained"


# --- retention ---


def scheduled(name: str, days: int, **annotations: str) -> StreamSnapshot:
    found = ready_snapshot()
    metadata = msgspec.structs.replace(
        found.metadata,
        name=name,
        uid=f"uid of {name}",
        creation_timestamp=TIME - datetime.timedelta(days=days),
        labels={"tidegate.dev/scheduled": "true"},
        annotations={"tidegate.dev/retention": '{"maxCount":1}', **annotations},
    )
    return msgspec.structs.replace(found, metadata=metadata)


async def test_what_is_not_kept_is_deleted_and_counted() -> None:
    world = World(scheduled("nightly", 2))
    world.index.of(SnapshotIndex).put(scheduled("later", 1))
    await world.check()
    assert PATH not in world.api.objects
    assert world.series()["tidegate_snapshots_expired_total", "shop", "orders"] == 1.0
    for name in ("nightly", "later"):
        world.index.of(SnapshotIndex).remove(("shop", name), f"uid of {name}")
    await world.check()
    assert world.series() == {}


async def test_what_the_application_says_is_noted() -> None:
    world = World(scheduled("nightly", 2))
    world.index.put_app(
        launched(app_with({"snapshots": {"intervalSeconds": 21600, "retention": {"maxAgeSeconds": 604800}}}))
    )
    assert world.index.of(SnapshotIndex).waiting_for(ORDERS) == {KEY}
    await world.check()
    assert world.stored().metadata.annotations["tidegate.dev/retention"] == '{"maxAgeSeconds":604800}'
    assert world.index.of(SnapshotIndex).waiting_for(ORDERS) == set()


async def test_one_that_is_complete_has_the_others_looked_at() -> None:
    world = World(snapshot(creation_timestamp=TIME))
    world.runs()
    await world.check()
    assert world.beside == []
    world.runs(report(SnapshotState.READY))
    await world.check()
    assert [found.metadata.name for found in world.beside] == ["nightly"]
    world.index.of(SnapshotIndex).put(scheduled("earlier", 1))
    assert world.index.of(SnapshotIndex).beside(world.beside[0]) == [("shop", "earlier")]


def read_back(number: int, pod_name: str) -> World:
    """Return a complete snapshot that this number asks to be read back, and a pod that has read one."""
    complete = ready_snapshot()
    world = World(msgspec.structs.replace(complete, spec=msgspec.structs.replace(complete.spec, verify_nonce=number)))
    ended = pod_that_said(SnapshotReport(ID, SnapshotState.VERIFIED))
    world.index.put_app(APP)
    world.index.put_pod(dataclasses.replace(ended, name=pod_name, spec_hash=pod(APP).spec_hash))
    return world


async def test_one_that_was_read_back_has_the_others_looked_at() -> None:
    """Until then, the newest that is known to be whole was kept."""
    world = read_back(number=1, pod_name=f"{ID}-verify-1")
    await world.check()
    assert [found.metadata.name for found in world.beside] == [ready_snapshot().metadata.name]


@pytest.mark.parametrize(("name", "number"), [("verify", 2), ("verify-1", 1)], ids=["of before 0.2", "numbered"])
async def test_a_pod_that_reads_it_back_is_found_whatever_number_asked_for_it(name: str, number: int) -> None:
    world = read_back(number=2, pod_name=f"{ID}-{name}")
    await world.check()
    verification = world.stored().status.verification
    assert verification is not None
    assert verification.nonce == number


async def test_a_pod_that_is_refused_is_remembered_by_its_own_name() -> None:
    asked = ready_snapshot()
    world = World(msgspec.structs.replace(asked, spec=msgspec.structs.replace(asked.spec, verify_nonce=1)))
    world.api.refusing["/api/v1/namespaces/shop/pods"] = Forbidden("quota")
    await world.settle()
    refusal = world.index.of(SnapshotIndex).memory(KEY).refusal
    assert refusal is not None
    assert (refusal.pod_name, refusal.attempts) == (f"{ID}-verify-1", 1)
    verified = world.stored().status.condition("Verified")
    assert verified is not None
    assert "quota" in verified.message


async def test_an_export_is_begun_once() -> None:
    asked = ready_snapshot()
    world = World(msgspec.structs.replace(asked, spec=msgspec.structs.replace(asked.spec, export=ExportSpec())))
    await world.settle()
    export = world.stored().status.export
    assert export is not None
    assert (export.nonce, export.phase) == (1, ExportPhase.RUNNING)
    # It is in the index as well, so that no second one is made.
    assert [path for path in world.api.objects if "-export-" in path] == [f"/api/v1/namespaces/shop/pods/{ID}-export-1"]
    assert [p.name for p in world.index.pods(ORDERS)] == [f"{ID}-export-1"]


async def test_a_snapshot_of_a_suspended_application_is_taken_where_a_limit_range_demands_more() -> None:
    world = World(api=Floored())
    world.index.put_app(launched(app_with(), phase=Phase.SUSPENDED))
    await world.settle()
    (container,) = world.api.objects[TAKE]["spec"]["containers"]
    assert container["resources"]["requests"]["memory"] == "1Gi"


@pytest.mark.parametrize(
    "answer",
    [Forbidden("denied by a policy"), Invalid("no"), Unavailable("failed calling webhook", internal_error=True)],
)
async def test_a_snapshot_that_nobody_may_change_says_so_in_an_event_and_wakes_its_application(answer: Failure) -> None:
    world = World()
    world.api.unchangeable[PATH] = answer
    with pytest.raises(RetryLaterError):
        await world.check()
    expected = (
        f"The API server refuses to change StreamSnapshot {KEY[1]}: {answer.message}. Correct what it names; Tidegate "
        "retries."
    )
    published = [o for path, o in world.api.objects.items() if "/events/" in path]
    assert [(o["reason"], o["message"]) for o in published] == [("WriteRefused", expected)]
    assert world.index.of(SnapshotIndex).refused_writes(ORDERS) == {KEY[1]: expected}
    assert ORDERS in world.woken
    world.api.unchangeable.clear()
    await world.settle()
    assert world.index.of(SnapshotIndex).refused_writes(ORDERS) == {}


async def test_a_snapshot_that_could_not_be_changed_for_want_of_an_answer_is_no_event() -> None:
    world = World()
    world.api.unchangeable[PATH] = Unavailable("no answer")
    with pytest.raises(RetryLaterError):
        await world.check()
    assert not [path for path in world.api.objects if "/events/" in path]
    assert world.index.of(SnapshotIndex).refused_writes(ORDERS) == {}
