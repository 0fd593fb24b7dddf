"""The drivers' access when people change it, and what that costs. The API server is a dictionary; no I/O."""

import asyncio
import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.access.act import AccessManager
from tidegate.access.builders.access import build_access
from tidegate.cache.access_age import ACCESS_AGE
from tidegate.cache.index import Index
from tidegate.kube.failures import AlreadyExists, Conflict, Failure, Forbidden, NotFound
from tidegate.kube.paths import collection_of, item, path_of
from tidegate.pods.records.names import SHARED_ACCESS_NAME
from tidegate_spark.contract.protocol import LABEL_MANAGED_BY, MANAGED_BY
from tidegate_testing.observations import NOW, app_with, running_driver

KEY = ("shop", "orders")
APP = app_with()
ACCESS = build_access(APP)
SHARED = [item(kind, "shop", SHARED_ACCESS_NAME) for kind in ("RoleBinding", "Role")]
"""What granted rights to all drivers of the namespace, in the order in which it is withdrawn."""


class ApiServer:
    """Objects by path, and what was asked. Other tasks run while it answers."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.held: dict[str, asyncio.Event] = {}
        """Requests that are answered when somebody lets them."""
        self.refused = ""
        """Where nothing may be created."""
        self._made = 0

    async def get(self, path: str, kind: type[Any]) -> Any:
        await self._note(f"get {path}")
        return msgspec.convert(self.objects[path], kind) if path in self.objects else NotFound(path)

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any]) -> Any:
        await self._note(f"create {path}")
        if path == self.refused:
            return Forbidden(path)
        place = f"{path}/{manifest['metadata']['name']}"
        if place in self.objects:
            return AlreadyExists(place)
        self._made += 1
        self.objects[place] = {**manifest, "metadata": {**manifest["metadata"], "uid": f"uid-{self._made}"}}
        return msgspec.Raw(b"{}")

    async def delete(self, path: str, uid: str = "", resource_version: str = "") -> bytes | Failure:
        await self._note(f"delete {path}")
        if path not in self.objects:
            return NotFound(path)
        if uid != self.objects[path]["metadata"]["uid"]:
            return Conflict(path)
        del self.objects[path]
        return b"{}"

    async def _note(self, request: str) -> None:
        self.asked.append(request)
        await asyncio.sleep(0)
        if request in self.held:
            await self.held[request].wait()


class World:
    """A namespace with one application."""

    def __init__(self) -> None:
        self.api, self.index, self.now = ApiServer(), Index(), NOW
        self.index.put_app(APP)
        self.manager = AccessManager(self.api, self.index, lambda: self.now)  # type: ignore[arg-type] # what is called of it

    def asked(self) -> list[str]:
        """Return what was asked, but for whether rights are left that all drivers shared."""
        return [request for request in self.api.asked if request.partition(" ")[2] not in SHARED]

    def granted(self) -> list[Any]:
        """Return all objects there are, without what the API server adds."""
        seen = [
            {**o, "metadata": {k: v for k, v in o["metadata"].items() if k != "uid"}} for o in self.api.objects.values()
        ]
        return sorted(seen, key=lambda o: [m["kind"] for m in ACCESS].index(o["kind"]))


async def test_access_that_was_made_a_moment_ago_costs_nothing() -> None:
    world = World()
    await world.manager.ensure(APP)
    world.now += ACCESS_AGE - 1
    await asyncio.gather(*(world.manager.ensure(APP) for _ in range(5)))
    assert world.asked() == [f"create {collection_of(manifest)}" for manifest in ACCESS]


async def test_the_account_and_what_it_is_granted_are_made_side_by_side_and_the_role_before_its_binding() -> None:
    world, creating = World(), [f"create {collection_of(manifest)}" for manifest in ACCESS]
    account, role, binding = creating
    for first, last in ((account, role), (role, account)):
        world = World()
        held = {first: asyncio.Event(), last: asyncio.Event()}
        world.api.held = held
        ensuring = asyncio.create_task(world.manager.ensure(APP))
        await let_everything_run()
        assert world.asked() == [account, role]
        held[first].set()
        await let_everything_run()
        assert (binding in world.api.asked) == (first == role)
        assert not ensuring.done()
        held[last].set()
        assert await ensuring is None
        assert world.granted() == list(ACCESS)


@pytest.mark.parametrize("manifest", ACCESS, ids=lambda manifest: manifest["kind"])
async def test_access_of_which_one_part_is_refused_is_not_relied_upon(manifest: dict[str, Any]) -> None:
    world = World()
    world.api.refused = collection_of(manifest)
    assert isinstance(await world.manager.ensure(APP), Forbidden)
    world.api.refused = ""
    assert await world.manager.ensure(APP) is None
    assert world.granted() == list(ACCESS)


async def let_everything_run() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_access_that_is_as_it_should_be_costs_three_reads_a_minute_however_many_launches_there_are() -> None:
    world = World()
    await world.manager.ensure(APP)
    world.api.asked.clear()
    world.now += ACCESS_AGE
    await asyncio.gather(*(world.manager.ensure(APP) for _ in range(5)))
    assert world.api.asked == [f"get {path_of(manifest)}" for manifest in ACCESS]  # and none for shared rights


@pytest.mark.parametrize("manifest", ACCESS, ids=lambda manifest: manifest["kind"])
async def test_access_that_somebody_deleted_is_put_back(manifest: dict[str, Any]) -> None:
    world = World()
    await world.manager.ensure(APP)
    del world.api.objects[path_of(manifest)]
    world.now += ACCESS_AGE
    assert await world.manager.ensure(APP) is None
    assert world.granted() == list(ACCESS)


CHANGES: dict[str, tuple[int, dict[str, Any]]] = {
    "fewer rules": (1, {"rules": []}),
    "no rules": (1, {"rules": None}),
    "more rights": (1, {"rules": [{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get"]}]}),
    "another role": (2, {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
    "nobody": (2, {"subjects": None}),
    "somebody else": (2, {"subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "shop"}]}),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_access_that_somebody_changed_is_as_it_was(what: str) -> None:
    number, change = CHANGES[what]
    world = World()
    await world.manager.ensure(APP)
    world.api.objects[path_of(ACCESS[number])] |= change
    world.now += ACCESS_AGE
    assert await world.manager.ensure(APP) is None
    assert world.granted() == list(ACCESS)


async def test_access_of_an_earlier_application_of_the_name_is_replaced_because_it_is_about_to_go() -> None:
    world = World()
    for manifest in build_access(app_with(uid="earlier")):
        world.api.objects[path_of(manifest)] = {**manifest, "metadata": {**manifest["metadata"], "uid": "old"}}
    assert await world.manager.ensure(APP) is None
    assert world.granted() == list(ACCESS)


@pytest.mark.parametrize("successor", [True, False])
async def test_access_that_was_made_for_one_that_is_gone_is_nothing_to_launch_its_successor_on(successor: bool) -> None:
    world = World()
    request = f"create {collection_of(ACCESS[-1])}"
    world.api.held[request] = asyncio.Event()
    making = asyncio.create_task(world.manager.ensure(APP))
    for _ in range(20):  # until it waits for the last answer
        await asyncio.sleep(0)
    assert request in world.api.asked
    key, metadata = (APP.metadata.namespace, APP.metadata.name), msgspec.structs.replace(APP.metadata, uid="u-2")
    world.index.remove_app(key, APP.metadata.uid)
    if successor:
        world.index.put_app(msgspec.structs.replace(APP, metadata=metadata))
    world.api.held[request].set()
    assert await making is None
    assert world.index.checked_access.age(key, world.now) == float("inf")


async def test_applications_of_one_namespace_have_each_their_own() -> None:
    world, other = World(), app_with(name="other", uid="u-2")
    await world.manager.ensure(APP)
    await world.manager.ensure(other)
    assert sorted(world.api.objects) == sorted(path_of(m) for m in (*ACCESS, *build_access(other)))
    assert len(world.manager._locks) == 0


def with_shared_rights(world: World, labels: dict[str, str] | None = None) -> None:
    """Have what an earlier version of the operator made for all drivers of the namespace."""
    ours = {LABEL_MANAGED_BY: MANAGED_BY} if labels is None else labels
    for path in SHARED:
        world.api.objects[path] = {"kind": "Role", "metadata": {"uid": "shared", "labels": ours}}


async def test_what_granted_rights_to_all_drivers_is_withdrawn_once_none_of_them_runs() -> None:
    world, driver = World(), dataclasses.replace(running_driver(app_with(name="b")), service_account=SHARED_ACCESS_NAME)
    with_shared_rights(world)
    world.index.put_pod(driver)
    await world.manager.ensure(APP)
    assert set(SHARED) <= world.api.objects.keys()
    world.index.remove_pod(driver)
    world.now += ACCESS_AGE
    await world.manager.ensure(APP)
    assert set(SHARED) & world.api.objects.keys() == set()


async def test_peoples_own_role_of_that_name_stays() -> None:
    world = World()
    with_shared_rights(world, labels={})
    await world.manager.ensure(APP)
    assert set(SHARED) <= world.api.objects.keys()


async def test_of_many_launched_at_once_one_looks_for_shared_rights_in_their_namespace() -> None:
    world = World()
    with_shared_rights(world)
    apps = [app_with(name=f"app-{number}") for number in range(5)]
    await asyncio.gather(*(world.manager.ensure(app) for app in apps))
    looked = [request for request in world.api.asked if request.partition(" ")[2] in SHARED]
    assert looked == [f"{verb} {path}" for path in SHARED for verb in ("get", "delete")]


async def test_where_it_could_not_be_looked_for_shared_rights_a_later_launch_does_so() -> None:
    world, asked = World(), 0

    async def get(path: str, kind: type[Any]) -> Any:
        nonlocal asked
        asked += path in SHARED
        return Forbidden(path) if asked == 1 else NotFound(path)

    world.api.get = get  # type: ignore[method-assign]
    await world.manager.ensure(APP)
    world.now += ACCESS_AGE
    await world.manager.ensure(APP)
    assert asked == 1 + len(SHARED)
