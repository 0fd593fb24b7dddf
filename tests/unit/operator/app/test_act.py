"""What actions do to a cluster that holds more than Tidegate's objects. The API server is a dictionary; no I/O."""

import asyncio
import contextlib
from typing import Any

import pytest

from tidegate.access.act import AccessManager
from tidegate.access.builders.access import build_access
from tidegate.access.keys import OperatorKeys
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.api.streaming_app import DriverStatus, decode_app
from tidegate.app.act import ActionExecutor
from tidegate.app.actions import (
    Action,
    ConfirmRecord,
    CreateDriver,
    CreatePurge,
    CreateSnapshot,
    DeleteLaunchSecrets,
    EnsureLaunchSecrets,
    OrderSnapshots,
    Plan,
    SetExecutors,
    WriteStatus,
)
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.observe import observe
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate.engine.events import EventPublisher
from tidegate.engine.outcome import ObserveAgain, Outcome
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.actions import EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import Failure, Forbidden, Invalid, NotFound, Throttled, Unavailable
from tidegate.kube.paths import collection_of, path_of
from tidegate.pods.records.metadata import owner_reference
from tidegate.pods.records.names import agent_secret_name, spark_secret_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord, process_of
from tidegate.snapshots.builders.stream_snapshot import build_scheduled
from tidegate.snapshots.index import SnapshotIndex
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import FINALIZER
from tidegate_spark.contract.reasons import ForeignReason, Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import KEYS, NOW, PLATFORM, app_with, deleted, launched, running_driver

APP = app_with()
KEY = ("shop", "orders")
ORDERS = "/apis/tidegate.dev/v1alpha1/namespaces/shop/streamingapps/orders"


class World:
    """An actor on such a server; the application is known."""

    def __init__(self, api: ApiServer | None = None) -> None:
        self.api, self.index = api or ApiServer(), Index()
        self.index.put_app(APP)
        self.client: Any = self.api
        client: Any = self.client
        agents, access, self.events = AgentClient(KEYS, 1), AccessManager(client, self.index), EventPublisher(client)
        secrets, self.metrics = LaunchSecrets(client, KEYS, PLATFORM), OperatorMetrics()
        self.woken: list[Key] = []
        self.actor = ActionExecutor(
            client, agents, self.index, access, secrets, self.events, self.metrics, self.woken.append
        )

    @property
    def reported(self) -> list[str]:
        """Events that were published."""
        return [o["message"] for path, o in self.api.objects.items() if "/events/" in path]

    def refused_snapshots(self) -> float | None:
        """Return what Prometheus is told of them."""
        labels = {"namespace": "shop", "app": "orders"}
        return self.metrics.registry.get_sample_value("tidegate_app_snapshots_refused_total", labels)

    async def do(self, *actions: Action) -> Outcome:
        plan = Plan("rule", ForeignReason("Reason"), "message", actions)
        return await self.actor.carry_out(APP, plan, NOW)

    def shown(self) -> Plan:
        """Return what is decided afterwards, which is what the resource says."""
        observation = observe(self.index, KEY, PLATFORM, NOW)
        assert observation is not None
        return decide(observation, NOW)

    async def follow(self, now: float = NOW) -> Outcome:
        """Do what is decided."""
        observation = observe(self.index, KEY, PLATFORM, now)
        assert observation is not None
        return await self.actor.carry_out(observation.app, decide(observation, now), now)


def secrets_of(world: World) -> dict[str, dict[str, Any]]:
    """Return what is in the Secrets, by their names."""
    return {
        path.rpartition("/")[2]: made["stringData"] for path, made in world.api.objects.items() if "/secrets/" in path
    }


def secret_names(epoch: int) -> list[str]:
    launch = (APP.metadata.name, APP.metadata.uid, epoch, PLATFORM.key_id)
    return [agent_secret_name(*launch), spark_secret_name(*launch)]


class ReadsNoSecret(ApiServer):
    """Tells whoever reads a Secret that this is not granted."""

    async def get(self, path: str, kind: type[Any]) -> Any:
        assert "/secrets/" not in path
        return await super().get(path, kind)


async def test_each_launch_has_secrets_of_its_own_that_nobody_reads_and_that_go_when_its_driver_is_gone() -> None:
    world = World(ReadsNoSecret())
    for epoch in (1, 2):
        assert await world.do(EnsureLaunchSecrets(epoch)) is None
    made = secrets_of(world)
    assert list(made) == secret_names(1) + secret_names(2)
    values = [value for content in made.values() for value in content.values()]
    assert len(set(values)) == len(values) == 6
    assert min(map(len, values)) >= 64
    assert await world.do(DeleteLaunchSecrets(1)) is None
    assert list(secrets_of(world)) == secret_names(2)
    assert await world.do(DeleteLaunchSecrets(1)) is None


async def test_what_was_made_before_a_crash_is_what_would_be_made_again() -> None:
    first, second = World(), World()
    await first.do(EnsureLaunchSecrets(3))
    for _ in range(2):
        assert await second.do(EnsureLaunchSecrets(3)) is None
    assert secrets_of(first) == secrets_of(second)


async def test_an_operator_with_another_key_makes_other_secrets_beside_those_of_a_driver_that_runs() -> None:
    world = World()
    await world.do(EnsureLaunchSecrets(3))
    before = secrets_of(world)
    other = OperatorKeys(b"another operator's key, made when the first was lost")
    secrets = LaunchSecrets(world.client, other, Platform("example/tidegate-operator:1", key_id=other.id))
    assert await secrets.ensure(APP, 3) is None
    after = secrets_of(world)
    assert before.items() < after.items()
    assert len(after) == 4


async def test_a_secret_of_people_by_the_name_of_the_application_is_left_alone() -> None:
    world = World()
    path = "/api/v1/namespaces/shop/secrets/orders-agent"
    theirs = {"metadata": {"name": "orders-agent", "namespace": "shop"}, "stringData": {"password": "x"}}
    world.api.put(path, theirs)
    for action in (EnsureLaunchSecrets(1), DeleteLaunchSecrets(1)):
        assert await world.do(action) is None
    assert secrets_of(world) == {"orders-agent": {"password": "x"}}


async def test_the_secrets_go_with_the_application() -> None:
    world = World()
    await world.do(EnsureLaunchSecrets(1))
    owners = [made["metadata"]["ownerReferences"] for path, made in world.api.objects.items() if "/secrets/" in path]
    assert owners == [[owner_reference(APP)]] * 2


async def test_a_namespace_that_is_being_deleted_does_not_hold_up_the_deletion_of_what_is_in_it() -> None:
    going = deleted(launched(app_with({"storage.deletionPolicy": "Delete"}, resourceVersion="8")))
    world = World()
    world.index.put_app(going)
    world.api.refusing["/api/v1/namespaces/shop/pods"] = Forbidden("is being terminated", namespace_terminating=True)
    plan = world.shown()
    (create,) = [action for action in plan.actions if isinstance(action, CreatePurge)]
    assert isinstance(await world.do(create), ObserveAgain)
    assert RemoveFinalizer() in world.shown().actions


ACCESS = build_access(APP)


@pytest.mark.parametrize("manifest", ACCESS, ids=lambda manifest: manifest["kind"])
async def test_access_of_people_stays_and_the_resource_says_what_is_in_the_way(manifest: dict[str, Any]) -> None:
    world = World()
    foreign = {**manifest, "metadata": {**manifest["metadata"], "labels": {}}, "rules": []}
    world.api.put(path_of(manifest), foreign)
    assert isinstance(await world.do(EnsureAccess()), ObserveAgain)
    plan = world.shown()
    assert (plan.reason, manifest["kind"] in plan.message) == ("AccessNameTaken", True)
    assert world.api.objects[path_of(manifest)]["rules"] == []


async def test_our_own_access_is_adopted_with_its_rules_renewed() -> None:
    world = World()
    for manifest in ACCESS:
        world.api.put(path_of(manifest), {**manifest, "rules": []})
    assert await world.do(EnsureAccess()) is None
    assert world.api.objects[path_of(ACCESS[1])]["rules"] == ACCESS[1]["rules"]


@pytest.mark.parametrize("failure", [Forbidden("exceeded quota"), Invalid("no such field")])
@pytest.mark.parametrize(
    ("action", "path"),
    [
        (EnsureLaunchSecrets(1), "/api/v1/namespaces/shop/secrets"),
        *((EnsureAccess(), collection_of(m)) for m in ACCESS),
    ],
)
async def test_what_the_api_server_refuses_before_a_launch_is_said(action: Action, path: str, failure: Failure) -> None:
    world = World()
    world.api.refusing[path] = failure
    assert isinstance(await world.do(action), ObserveAgain)
    plan = world.shown()
    assert (plan.reason, failure.message in plan.message) == ("LaunchRefused", True)


@pytest.mark.parametrize("path", ["/api/v1/namespaces/shop/secrets", *(collection_of(m) for m in ACCESS)])
async def test_a_launch_in_a_namespace_that_is_being_deleted_says_so_whatever_cannot_be_created(path: str) -> None:
    world = World()
    world.api.keep(ORDERS, APP)
    world.api.refusing[path] = Forbidden("is being terminated", namespace_terminating=True)
    assert isinstance(await world.follow(), ObserveAgain)
    plan = world.shown()
    assert (plan.reason, "Namespace shop is being deleted" in plan.message) == ("NamespaceTerminating", True)


@pytest.mark.parametrize("manifest", ACCESS, ids=lambda manifest: manifest["kind"])
async def test_nor_does_the_access_for_a_purge_hold_it_up(manifest: dict[str, Any]) -> None:
    going = deleted(launched(app_with({"storage.deletionPolicy": "Delete"}, resourceVersion="8")))
    world = World()
    world.api.keep(ORDERS, going)
    world.index.put_app(going)
    refusal = Forbidden("is being terminated", namespace_terminating=True)
    world.api.refusing = {collection_of(manifest): refusal}
    assert isinstance(await world.follow(), ObserveAgain)
    assert RemoveFinalizer() in world.shown().actions


@pytest.mark.parametrize("path", ["/api/v1/namespaces/shop/secrets", *(collection_of(m) for m in ACCESS)])
async def test_what_was_refused_before_its_first_launch_does_not_look_launched_and_goes_at_once(path: str) -> None:
    world, new = World(), app_with({"storage.deletionPolicy": "Delete"}, finalizers=[], resource_version="8")
    world.api.keep(ORDERS, new)
    world.index.put_app(new)
    world.api.refusing[path] = Forbidden("exceeded quota")
    assert isinstance(await world.follow(), ObserveAgain)
    assert world.shown().reason == "LaunchRefused"
    assert await world.follow() is None
    stored = decode_app(world.api.objects[ORDERS])
    assert (stored.metadata.finalizers, stored.status.epoch) == ((), 0)
    del world.api.refusing[path]
    assert await world.follow(NOW + 60) is None
    stored = decode_app(world.api.objects[ORDERS])
    assert (stored.metadata.finalizers, stored.status.epoch) == ((FINALIZER,), 1)


@pytest.mark.parametrize("how", ["it is there", "nobody knows"])
async def test_an_epoch_that_was_refused_is_not_tried_again_once_its_pod_may_have_been_there(how: str) -> None:
    world = World()
    refusal = Refusal("orders-driver", "hash", 1, Reason.LAUNCH_REFUSED, "quota", NOW - 60, 1)
    world.index.memories[KEY] = ProcessState(refusal=refusal)
    manifest = build_driver_pod(APP, 1, 1, PLATFORM)
    if how == "it is there":
        world.api.put("/api/v1/namespaces/shop/pods/orders-driver", pod_of(manifest))
        await world.do(CreateDriver(manifest, 1))
    else:
        world.api.refusing["/api/v1/namespaces/shop/pods"] = Unavailable("the answer was lost")
        with pytest.raises(RetryLaterError):
            await world.do(CreateDriver(manifest, 1))
    assert world.index.memory(KEY).refusal is None


async def test_what_the_api_server_says_of_a_pod_it_could_not_create_is_remembered_until_there_is_one() -> None:
    world = World()
    pods, app = "/api/v1/namespaces/shop/pods", "/apis/tidegate.dev/v1alpha1/namespaces/shop/streamingapps/orders"
    world.api.refusing[pods] = Unavailable("failed calling webhook")
    with pytest.raises(RetryLaterError):
        await world.do(CreateDriver(build_driver_pod(APP, 1, 1, PLATFORM), 1))
    assert world.index.memory(KEY).not_created == "failed calling webhook"
    without, there = launched(APP).status, launched(APP, driver=DriverStatus(pod_name="orders-driver")).status
    for status, message in ((without, "failed calling webhook"), (there, "")):
        world.api.keep(app, APP)
        await world.do(WriteStatus(status))
        assert world.index.memory(KEY).not_created == message


async def test_what_is_told_of_a_launch_waits_and_what_is_told_of_anything_else_comes_before_what_follows() -> None:
    world = World()
    publisher = asyncio.create_task(world.events.run_worker())
    await asyncio.sleep(0)
    create = CreateDriver(build_driver_pod(APP, 1, 1, PLATFORM), 1)
    await world.do(
        PublishEvent(ForeignReason("Before"), "before", False, "1"),
        create,
        PublishEvent(ForeignReason("After"), "after", False, "2"),
    )
    assert "/api/v1/namespaces/shop/pods/orders-driver" in world.api.objects
    assert world.reported == ["before"], "the worker is free without it"
    world.events.stop()
    await publisher
    assert world.reported == ["before", "after"]


@pytest.mark.parametrize("strict", [True, False])
async def test_a_driver_is_made_with_fields_that_no_pod_has_only_if_it_ran_with_them(strict: bool) -> None:
    world = World()
    await world.do(CreateDriver(build_driver_pod(APP, 1, 1, PLATFORM), 1, strict=strict))
    assert world.api.strictly == ["/api/v1/namespaces/shop/pods/orders-driver"] * strict


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (Invalid("no such field", in_itself=True), "no such field"),
        (Forbidden("too much", limit_range=True), "too much"),
        (Invalid("denied"), ""),
        (Forbidden("quota"), ""),
    ],
)
async def test_a_refusal_of_the_pod_itself_is_known_from_one_that_others_decided(
    failure: Failure, message: str
) -> None:
    world = World()
    world.api.refusing["/api/v1/namespaces/shop/pods"] = failure
    await world.do(CreateDriver(build_driver_pod(APP, 1, 1, PLATFORM), 1))
    refusal = world.index.memory(KEY).refusal
    assert refusal is not None
    assert refusal.server_message == message
    if not message or isinstance(failure, Invalid):
        assert refusal.message == (
            f"The API server refuses pod orders-driver: {failure.message}. Correct what it names; Tidegate retries."
        )


async def test_a_pod_that_was_refused_is_no_launch() -> None:
    world = World()
    world.api.refusing["/api/v1/namespaces/shop/pods"] = Invalid("no")
    create = CreateDriver(build_driver_pod(APP, 1, 1, PLATFORM), 1)
    assert isinstance(await world.do(create, PublishEvent(ForeignReason("After"), "after", False, "2")), ObserveAgain)
    assert world.reported == []


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}}


# --- snapshots of a schedule ---

SLOT = CreateSnapshot(build_scheduled(APP, NOW))
SNAPSHOT = path_of(SLOT.manifest)


async def test_a_snapshot_of_the_schedule_is_made_once() -> None:
    world = World()
    assert await world.do(SLOT) is None
    (known,) = world.index.of(SnapshotIndex).of_app(KEY)
    assert known.metadata.name == "orders-20270115-0800"
    world.index.of(SnapshotIndex).remove(known.key, known.metadata.uid)
    world.index = world.actor._index = Index()
    world.index.put_app(APP)
    assert await world.do(SLOT) is None
    assert len(world.index.of(SnapshotIndex).of_app(KEY)) == 1


async def test_one_of_the_name_that_is_not_the_schedules_is_left_alone_and_told() -> None:
    world = World()
    peoples = {**SLOT.manifest, "metadata": {"name": "orders-20270115-0800", "namespace": "shop"}}
    world.api.put(SNAPSHOT, peoples)
    assert isinstance(await world.do(SLOT), ObserveAgain)
    refusal = world.index.memory(KEY).snapshot_refusal
    assert refusal is not None
    assert refusal.reason == "SnapshotNameTaken"
    assert [o["reason"] for path, o in world.api.objects.items() if "/events/" in path] == ["SnapshotNameTaken"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(Forbidden("quota"), "SnapshotRefused"), (Invalid("no"), "SnapshotRefused")],
)
async def test_a_snapshot_that_the_api_server_refuses_is_told_and_counted(answer: Failure, reason: str) -> None:
    world = World()
    world.api.refusing[collection_of(SLOT.manifest)] = answer
    for times in (1, 2):
        assert isinstance(await world.do(SLOT), ObserveAgain)
        refusal = world.index.memory(KEY).snapshot_refusal
        assert refusal is not None
        assert refusal.reason == reason
        assert world.refused_snapshots() == times


async def test_a_snapshot_for_which_a_namespace_has_no_room_because_it_is_deleted_is_not_counted() -> None:
    world = World()
    world.api.refusing[collection_of(SLOT.manifest)] = Forbidden("it goes", namespace_terminating=True)
    assert isinstance(await world.do(SLOT), ObserveAgain)
    assert world.refused_snapshots() is None


@pytest.mark.parametrize(
    "answer", [Unavailable("failed calling webhook"), Throttled("too many requests", 5.0), NotFound("no such resource")]
)
async def test_a_snapshot_that_the_api_server_can_not_make_now_holds_up_nothing_else(answer: Failure) -> None:
    world, after = World(), PublishEvent(ForeignReason("After"), "what comes after it", False, "1")
    world.api.refusing[collection_of(SLOT.manifest)] = answer
    assert await world.do(SLOT, after) is None
    memory = world.index.memory(KEY)
    assert memory.snapshot_not_created is not None
    assert (memory.snapshot_not_created.at, memory.snapshot_refusal) == (NOW, None)
    assert memory.snapshot_not_created.message == (
        f"The API server could not create StreamSnapshot orders-20270115-0800: {answer.message}. If it lasts, correct "
        "what it names; Tidegate retries."
    )
    assert (world.reported, world.woken, world.refused_snapshots()) == (["what comes after it"], [KEY], 1)


async def test_a_snapshot_that_can_not_be_made_for_longer_is_an_event_until_there_is_one() -> None:
    world = World()
    world.api.refusing[collection_of(SLOT.manifest)] = Unavailable("failed calling webhook")
    await world.do(SLOT)
    assert world.reported == [], "one lost answer is no news"
    for port in (41_234, 41_240):  # a port of the API server's own, another one each time
        world.api.refusing[collection_of(SLOT.manifest)] = Unavailable(f"failed calling webhook: from port {port}")
        await world.do(SLOT)
    (message,) = world.reported
    assert "failed calling webhook: from port 41234" in message
    world.api.refusing.clear()
    await world.do(SLOT)
    assert world.index.memory(KEY).snapshot_not_created is None


@pytest.mark.parametrize(("version", "made"), [("7", True), ("8", False)])
async def test_a_pod_of_a_record_that_says_so_no_more_is_not_made(version: str, made: bool) -> None:
    world, path = World(), "/apis/tidegate.dev/v1alpha1/namespaces/shop/streamingapps/orders"
    seen = app_with(resourceVersion="7")
    world.index.put_app(seen)
    world.api.keep(path, app_with(resourceVersion=version))
    purge = CreatePurge(build_driver_pod(APP, 1, 1, PLATFORM))
    plan = Plan("rule", ForeignReason("Reason"), "message", (ConfirmRecord(), purge))
    outcome = await world.actor.carry_out(seen, plan, NOW)
    assert (outcome is None) is made
    assert ("/api/v1/namespaces/shop/pods/orders-driver" in world.api.objects) is made
    known = world.index.app(KEY)
    assert isinstance(known, KnownApp)
    assert known.metadata.resource_version == version


# --- the driver's agent ---


class Agent:
    """Answers every order with the same; None: it takes it."""

    def __init__(self, answer: Unanswered | None) -> None:
        self.answer = answer

    async def set_executors(self, key: Key, pod: PodRecord, instances: int) -> Unanswered | None:
        return self.answer

    async def order_snapshots(self, key: Key, pod: PodRecord, orders: SnapshotOrders) -> Unanswered | None:
        return self.answer


async def ordered(world: World, driver: PodRecord, answer: Unanswered | None) -> ProcessState:
    """Return what is known after both kinds of orders were given to an agent that answers so."""
    agent: Any = Agent(answer)
    world.actor._agents = agent
    assert await world.do(OrderSnapshots(driver, SnapshotOrders(dispose=("old",)))) is None
    with contextlib.nullcontext() if answer is None else pytest.raises(RetryLaterError):
        await world.do(SetExecutors(driver, 5))
    return world.index.memory(KEY)


async def test_orders_that_an_agent_refuses_are_remembered_until_it_takes_them() -> None:
    world, driver = World(), running_driver(APP)
    refused = (process_of(driver), "HTTP 422: instances")
    memory = await ordered(world, driver, Unanswered("HTTP 422: instances", refused=True))
    assert (memory.executors_refused, memory.orders_refused) == (refused, refused)
    memory = await ordered(world, driver, None)
    assert (memory.executors_refused, memory.orders_refused) == (("", ""), ("", ""))


async def test_an_agent_that_does_not_answer_refuses_nothing() -> None:
    memory = await ordered(World(), running_driver(APP), Unanswered("no answer within 3 s"))
    assert (memory.executors_refused, memory.orders_refused) == (("", ""), ("", ""))


async def test_an_application_that_nobody_may_change_says_so_in_an_event() -> None:
    world = World()
    world.api.keep(ORDERS, APP)
    for request in ("", " (request 17)"):  # the cause lasts, and its words differ each time
        world.api.unchangeable[ORDERS] = Forbidden(f"denied by a policy{request}")
        with pytest.raises(RetryLaterError, match="denied by a policy"):
            await world.do(RemoveFinalizer())
    assert world.reported == [
        "The API server refuses to change StreamingApp orders: denied by a policy. Correct what it names; Tidegate "
        "retries."
    ]
