"""ControlMessages and StreamSnapshots that cannot be read have an event and conditions, with reason and field.

A real HTTP server tells the watch of them, on 127.0.0.1 in this process; what is told is told to a dictionary.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import structlog
from aiohttp import web

from tidegate.agent.client import AgentClient
from tidegate.api.control_message import CONTROL_KIND, decode_message
from tidegate.api.stream_snapshot import SNAPSHOT_KIND, decode_snapshot
from tidegate.cache.index import Index
from tidegate.cache.kinds.resource_cache import UnreadableResource
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.kinds.watch_resources import follow
from tidegate.control.act import ControlActionExecutor
from tidegate.control.index import ControlIndex
from tidegate.control.reconcile import NO_APP, ControlReconciler
from tidegate.engine.events import EventPublisher
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import Failure, Invalid, Unavailable
from tidegate.snapshots.index import SnapshotIndex
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.hostile import nested
from tidegate_testing.observations import KEYS, NOW
from tidegate_testing.scripted_server import Server, talking_to

PLURALS = {CONTROL_KIND: "controlmessages", SNAPSHOT_KIND: "streamsnapshots"}
SPECS: dict[str, dict[str, Any]] = {
    CONTROL_KIND: {"appRef": {"name": "orders"}, "type": "reload"},
    SNAPSHOT_KIND: {"appRef": {"name": "orders"}},
}


def body(kind: str, change: dict[str, Any], name: str = "odd") -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": name, "uid": f"uid-{name}", "resourceVersion": "7", "generation": 3}
    return {"metadata": metadata, "spec": {**SPECS[kind], **change}}


async def listed(kind: str, *bodies: bytes) -> Index:
    """Return what the watch makes of a list that holds these."""
    index = Index()
    kinds: dict[str, tuple[Any, Any]] = {
        CONTROL_KIND: (index.of(ControlIndex), decode_message),
        SNAPSHOT_KIND: (index.of(SnapshotIndex), decode_snapshot),
    }
    watched, decode = kinds[kind]
    text = b'{"metadata":{"resourceVersion":"9"},"items":[' + b",".join(bodies) + b"]}"
    async with talking_to(Server(web.Response(body=text, content_type="application/json"))) as client:
        following = asyncio.ensure_future(follow(client, OperatorMetrics(), kind, "", watched, decode, lambda _: None))
        async with asyncio.timeout(30):
            await watched.complete.wait()
        following.cancel()
    return index


def found(index: Index, kind: str) -> list[UnreadableResource]:
    return (index.of(ControlIndex) if kind == CONTROL_KIND else index.of(SnapshotIndex)).unreadable_in("shop")


class World:
    """A teller on a dictionary."""

    def __init__(self, api: ApiServer | None = None) -> None:
        self.api = api or ApiServer()
        client: Any = self.api
        self.client, self.events = client, EventPublisher(client)
        self.reporter = InvalidResourceReporter(client, self.events)

    def keep(self, kind: str, name: str = "odd") -> str:
        """Have a resource there, and return its path."""
        path = f"/apis/tidegate.dev/v1alpha1/namespaces/shop/{PLURALS[kind]}/{name}"
        self.api.objects[path] = {"metadata": body(kind, {}, name)["metadata"]}
        return path

    @property
    def reported(self) -> list[tuple[str, str, str]]:
        """Kind and name of what each event is about, and its reason."""
        events = [each for path, each in self.api.objects.items() if "/events/" in path]
        return [(e["involvedObject"]["kind"], e["involvedObject"]["name"], e["reason"]) for e in events]

    @property
    def message(self) -> list[str]:
        return [each["message"] for path, each in self.api.objects.items() if "/events/" in path]


def deep(kind: str) -> bytes:
    """Return a resource with a field that no decoder of Python survives."""
    change = {"appRef": {"name": "orders", "more": "@"}} if kind == CONTROL_KIND else {"more": "@"}
    return json.dumps(body(kind, change)).replace('"@"', nested(2000)).encode()


def mistyped(kind: str) -> bytes:
    return json.dumps(body(kind, {"appRef": 7})).encode()


def endless(kind: str) -> bytes:
    """Return a resource of which the decoder repeats a value of a megabyte."""
    word = "x" * 1_000_000
    spec = {"deletionPolicy": word} if kind == SNAPSHOT_KIND else {}
    return json.dumps({**body(kind, spec), "status": {"phase": word}}).encode()


@pytest.mark.parametrize(
    ("kind", "make", "field"),
    [
        (CONTROL_KIND, mistyped, "spec.appRef: Expected `object`, got `int`"),
        (SNAPSHOT_KIND, mistyped, "spec.appRef: Expected `object | null`, got `int`"),
        (CONTROL_KIND, endless, "status.phase: Invalid enum value"),
        (SNAPSHOT_KIND, endless, "spec.deletionPolicy: Invalid enum value"),
        (CONTROL_KIND, deep, "spec.appRef.more"),
        (SNAPSHOT_KIND, deep, "spec.more"),
    ],
)
async def test_it_has_one_event_and_conditions_that_name_the_field(
    kind: str, make: Callable[[str], bytes], field: str
) -> None:
    index, world = await listed(kind, make(kind)), World()
    path = world.keep(kind)
    for _ in range(2):
        await world.reporter.report_all(found(index, kind), NOW, kind)
    assert world.reported == [(kind, "odd", "InvalidSpec")]
    (message,) = world.message
    assert field in message
    assert message.startswith("The resource cannot be read: ")
    assert len(message) < 1000
    ready = next(c for c in world.api.objects[path]["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"], field in ready["message"]) == ("False", "InvalidSpec", True)


class Refusing(ApiServer):
    """Takes no status of some."""

    def __init__(self, answers: dict[str, Failure]) -> None:
        super().__init__()
        self.answers, self.asked = answers, 0

    async def merge_patch(self, path: str, change: dict[str, Any], kind: type[Any]) -> Any:
        self.asked += 1
        answer = self.answers.get(path.removesuffix("/status").rpartition("/")[2])
        return answer if answer is not None else await super().merge_patch(path, change, kind)


def reconciler_of(world: World, index: Index) -> ControlReconciler:
    metrics, agents = OperatorMetrics(), AgentClient(KEYS, 1)
    actor = ControlActionExecutor(world.client, agents, index, world.events, metrics)
    poller: Any = object()
    return ControlReconciler(index, actor, poller, metrics.control, world.reporter, clock=lambda: NOW)


async def test_one_of_which_nothing_can_be_said_now_does_not_keep_the_others_waiting() -> None:
    bodies = [json.dumps(body(CONTROL_KIND, {"type": 7}, name)).encode() for name in ("a", "b", "c")]
    index, world = await listed(CONTROL_KIND, *bodies), World(Refusing({"a": Unavailable("not now")}))
    paths = [world.keep(CONTROL_KIND, name) for name in ("a", "b", "c")]
    with pytest.raises(RetryLaterError, match="not now"):
        await reconciler_of(world, index).reconcile(("shop", NO_APP))
    assert [name for _, name, _ in world.reported] == ["a", "b", "c"]
    assert ["status" in world.api.objects[path] for path in paths] == [False, True, True]


async def test_one_that_takes_no_status_is_told_once_in_each_version() -> None:
    """Whoever stores a thousand of them must not have all of them told again with each."""
    index, api = (
        await listed(CONTROL_KIND, json.dumps(body(CONTROL_KIND, {"type": 7})).encode()),
        Refusing({"odd": Invalid("status.queries: Invalid value")}),
    )
    world = World(api)
    (known,) = found(index, CONTROL_KIND)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            await world.reporter.report_all([known], NOW, CONTROL_KIND)
    assert (api.asked, len(world.reported)) == (1, 1)
    assert len([each for each in logs if each["log_level"] == "error"]) == 1
    later = UnreadableResource(msgspec.structs.replace(known.metadata, resource_version="8"), known.problem)
    await world.reporter.report(later, NOW, CONTROL_KIND)
    assert api.asked == 2


async def test_one_that_takes_no_status_is_told_again_when_its_event_is_forgotten() -> None:
    index = await listed(CONTROL_KIND, json.dumps(body(CONTROL_KIND, {"type": 7})).encode())
    world = World(Refusing({"odd": Invalid("status.queries: Invalid value")}))
    (known,) = found(index, CONTROL_KIND)
    left = await world.reporter.report_all([known], NOW, CONTROL_KIND)
    assert left is not None
    assert await world.reporter.report_all([known], NOW + left - 1, CONTROL_KIND) == 1.0
    assert len(world.reported) == 1
    await world.reporter.report_all([known], NOW + left, CONTROL_KIND)
    assert len(world.reported) == 2


async def test_those_that_take_no_status_are_not_all_told_again_in_the_same_second_of_an_hour() -> None:
    names = [f"odd-{number}" for number in range(8)]
    bodies = [json.dumps(body(CONTROL_KIND, {"type": 7}, name)).encode() for name in names]
    index = await listed(CONTROL_KIND, *bodies)
    world = World(Refusing(dict.fromkeys(names, Invalid("status.queries: Invalid value"))))
    each = [await world.reporter.report(one, NOW, CONTROL_KIND) for one in found(index, CONTROL_KIND)]
    assert len(set(each)) == len(names)
    for one, left in zip(found(index, CONTROL_KIND), each, strict=True):
        assert left is not None
        assert await world.reporter.report(one, NOW + left, CONTROL_KIND) == 3600.0
    assert len(world.reported) == 2 * len(names)


async def test_nobody_looks_again_at_one_whose_conditions_say_it() -> None:
    index, world = await listed(CONTROL_KIND, mistyped(CONTROL_KIND)), World()
    world.keep(CONTROL_KIND)
    assert await world.reporter.report_all(found(index, CONTROL_KIND), NOW, CONTROL_KIND) is None
