"""What becomes of applications that cannot be read, from the index to an API server made of lists; no I/O."""

from typing import Any

import msgspec
import pytest

from tidegate.access.act import AccessManager
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.client import AgentClient
from tidegate.api.streaming_app import StreamingApp, decode_app
from tidegate.app.act import ActionExecutor
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.reconcile import Reconciler
from tidegate.app.rules.plan import decide
from tidegate.cache.app_versions import read_version
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.large_apps import LARGE, MOST_OF_NAMESPACE, LargeApp
from tidegate.engine.events import EventPublisher
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import Conflict, Failure, Invalid, NotFound
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import FINALIZER
from tidegate_testing.observations import KEYS, NOW, PLATFORM, app_with, executor_of, observe, running_driver
from tidegate_testing.values import body

KEY = ("shop", "orders")
PATH = "/apis/tidegate.dev/v1alpha1/namespaces/shop/streamingapps/orders"


class ApiServer:
    """Takes everything, and keeps what it was asked for; ``refusing`` is its answer to patches, if there is one."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, Any]] = []
        self.events: list[str] = []
        self.deleted: list[str] = []
        self.refusing: Failure | None = None
        self.stored: StreamingApp | dict[str, Any] | None = None
        self.pods: dict[str, dict[str, Any]] = {}

    async def get(self, path: str, kind: type[Any]) -> Any:
        name = path.rpartition("/")[2]
        if "/pods/" in path and name in self.pods:
            return msgspec.convert(self.pods[name], kind)
        return msgspec.Raw(msgspec.json.encode(self.stored)) if self.stored and path == PATH else NotFound(path)

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any]) -> Any:
        self.events.append(manifest["reason"])
        return msgspec.Raw(b"{}")

    async def merge_patch(self, path: str, change: Any, kind: type[Any]) -> Any:
        if self.refusing is not None:
            return self.refusing
        self.patches.append((path, change))
        answer = msgspec.json.encode(body({"application.runtime": "Unheard"}))
        return msgspec.json.decode(answer, type=kind)

    async def delete(self, path: str, uid: str = "", resource_version: str = "") -> bytes | Failure:
        self.deleted.append(path.rpartition("/")[2])
        return b"{}"


class Nobody:
    """In the place of the agents' poller."""

    def follow(self, key: Any, driver: Any) -> None: ...


class World:
    """A reconciler, and an application of another version of the CRD."""

    def __init__(self, **metadata: Any) -> None:
        self.api, self.index = ApiServer(), Index()
        client: Any = self.api
        poller: Any = Nobody()
        metrics, events = OperatorMetrics(), EventPublisher(client)
        access, agents = AccessManager(client, self.index), AgentClient(KEYS, 1)
        actor = ActionExecutor(
            client, agents, self.index, access, LaunchSecrets(client, KEYS, PLATFORM), events, metrics, lambda key: None
        )
        reporter = InvalidResourceReporter(client, events)
        self.reconciler = Reconciler(self.index, PLATFORM, actor, poller, metrics, reporter, lambda: NOW)
        resource = body({"application.runtime": "Unheard"})
        resource["metadata"] |= {"finalizers": [FINALIZER, "another/one"], **metadata}
        self.index.put_app(resource)
        assert isinstance(self.index.app(KEY), UnreadableApp)


async def test_its_conditions_are_written_into_the_version_that_was_read() -> None:
    world = World()
    await world.reconciler.reconcile(KEY)
    ((path, change),) = world.api.patches
    assert (path, change["metadata"]) == (PATH + "/status", {"resourceVersion": "7"})


async def test_what_is_written_of_one_whose_status_was_lost_does_not_say_that_it_was_never_launched() -> None:
    world = World()
    await world.reconciler.reconcile(KEY)
    ((_, change),) = world.api.patches
    resource = body({"startFrom": {"snapshotRef": {"name": "nightly"}}})
    resource["metadata"] |= {"finalizers": [FINALIZER]}
    readable = decode_app({**resource, "status": change["status"]})
    assert decide(observe(readable), NOW).rule == "launch"


@pytest.mark.parametrize("answer", [Conflict("another version"), NotFound(PATH)])
async def test_one_that_was_replaced_or_is_gone_meanwhile_is_left_to_the_watch(answer: Failure) -> None:
    world = World()
    world.api.refusing = answer
    assert await world.reconciler.reconcile(KEY) is None


LOOKS = {"name": "orders-driver", "namespace": "shop"}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


async def test_it_is_told_and_its_driver_runs_on() -> None:
    world = World()
    world.index.put_pod(running_driver(app_with()))
    await world.reconciler.reconcile(KEY)
    assert (world.api.events, world.api.deleted) == (["InvalidSpec"], [])


async def test_deleted_it_ends_with_its_pods_and_its_storage_is_kept() -> None:
    world = World(**DELETED)
    driver, executor = running_driver(app_with()), executor_of(app_with(), 1)
    for pod in (driver, executor):
        world.index.put_pod(pod)
    await world.reconciler.reconcile(KEY)
    assert (world.api.deleted, world.api.patches) == (["orders-driver"], [])
    world.index.remove_pod(driver)
    await world.reconciler.reconcile(KEY)
    assert (world.api.deleted[1:], world.api.patches) == ([executor.name], [])
    world.index.remove_pod(executor)
    await world.reconciler.reconcile(KEY)
    assert world.api.events == ["StorageRetained"]
    assert world.api.patches == [(PATH, {"metadata": {"resourceVersion": "7", "finalizers": ["another/one"]}})]


async def test_deleted_it_waits_for_its_program_in_a_pod_whose_owner_was_removed_and_says_so() -> None:
    world = World(**DELETED)
    pod = build_driver_pod(app_with(), 1, 1, PLATFORM)
    world.api.pods["orders-driver"] = {**pod, "metadata": {**LOOKS, "uid": "pod-1", "resourceVersion": "5"}}
    assert await world.reconciler.reconcile(KEY) == 0.0
    for _ in range(3):
        left = await world.reconciler.reconcile(KEY)
        assert left is not None
        assert left > 0.0
    assert (world.api.events, world.api.patches) == (["PodNameTaken"], [])
    world.reconciler.clock = lambda: NOW + 3600
    del world.api.pods["orders-driver"]
    await world.reconciler.reconcile(KEY)
    assert world.api.events == ["PodNameTaken", "StorageRetained"]
    assert [change["metadata"]["finalizers"] for _, change in world.api.patches] == [["another/one"]]


async def test_deleted_it_goes_beside_peoples_own_pod_of_its_drivers_name() -> None:
    world = World(**DELETED)
    world.api.pods["orders-driver"] = {"metadata": {**LOOKS, "uid": "pod-1", "resourceVersion": "5"}}
    await world.reconciler.reconcile(KEY)
    assert (world.api.events, len(world.api.patches)) == (["StorageRetained"], 1)


async def test_deleted_it_names_a_pod_whose_node_does_not_confirm_its_end() -> None:
    world = World(**DELETED)
    world.index.put_pod(running_driver(app_with(), delete_by=NOW - 3600))
    await world.reconciler.reconcile(KEY)
    assert (world.api.events, world.api.patches) == (["DriverNotGone"], [])


async def test_an_api_server_that_refuses_to_change_what_breaks_its_schema_is_asked_again_later() -> None:
    world = World(**DELETED)
    world.api.refusing = Invalid("spec.application.runtime: Unsupported value")
    with pytest.raises(RetryLaterError, match="Unsupported value"):
        await world.reconciler.reconcile(KEY)


def left_out(**metadata: Any) -> World:
    """Return an application for which there was no room beside an older one, which is gone."""
    world, resource = World(**metadata), body()
    resource["metadata"] |= {**metadata, "resourceVersion": "8", "creationTimestamp": "2026-01-03T00:00:00Z"}
    for day, uid in enumerate(("older", "old"), 1):
        created = f"2026-01-{day:02}T00:00:00Z"
        world.index.large.admits(LargeApp(uid, ("shop", uid), created, MOST_OF_NAMESPACE // 2))
    resource["spec"]["application"]["args"] = ["x" * LARGE]
    world.index.put_version(read_version(msgspec.json.encode(resource), world.index.large.admits_version))
    assert world.index.remove_app(("shop", "older"), "older") == {KEY}
    return world


async def test_one_for_which_there_is_room_again_is_read_again() -> None:
    world = left_out()
    world.api.stored = app_with()
    assert await world.reconciler.reconcile(KEY) == 0.0
    assert isinstance(world.index.app(KEY), KnownApp)


async def test_one_that_turns_out_to_be_unreadable_when_there_is_room_for_it_is_reported_or_released() -> None:
    for metadata, reported in (({}, "InvalidSpec"), ({**DELETED, "finalizers": [FINALIZER]}, "StorageRetained")):
        world = left_out(**metadata)
        world.api.stored = body({"application.runtime": "Unheard"})
        world.api.stored["metadata"] |= {**metadata, "resourceVersion": "9"}
        assert await world.reconciler.reconcile(KEY) == 0.0
        await world.reconciler.reconcile(KEY)
        assert world.api.events == [reported]
