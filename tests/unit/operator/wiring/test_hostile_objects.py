"""One object never harms another: whatever is stored, its neighbours are read, and its owner is told.

A real HTTP server, on 127.0.0.1 in this process; real watches, the real decoders and indexes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tidegate.api.control_message import MessagePhase, decode_message, is_too_large
from tidegate.api.stream_snapshot import decode_snapshot
from tidegate.api.values.errors import UnreadableAppError
from tidegate.cache.app_watch import watch_apps
from tidegate.cache.index import Index
from tidegate.cache.kinds.watch_resources import follow
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.large_apps import MIB
from tidegate.cache.pods.pod_watch import watch_pods
from tidegate.control.index import ControlIndex
from tidegate.control.rules.plan import decide_control
from tidegate.kube import watch
from tidegate.kube.lines import LONGEST_LINE, lines_of
from tidegate.kube.watch import Changed, Listed, Watch
from tidegate.pods.records.read_pods import read_record
from tidegate.snapshots.index import SnapshotIndex
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD
from tidegate_spark.contract.protocol import CONFIG_VARIABLE
from tidegate_testing.control_observations import observe_running
from tidegate_testing.examples import gate_share
from tidegate_testing.hostile import hostile_objects, nested
from tidegate_testing.scripted_server import PagedServer, Server, talking_to
from tidegate_testing.whole_objects import whole_parts

NUMBER = gate_share(1_000)
"""Objects of each kind for each seed; the seeds are fixed, so that a failure can be reproduced."""
SEEDS = [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(20)]
"""One is in the gate, with a third of its objects. All together are 80,000; agents' answers and stored forms make it
more than 100,000."""
META = {
    "namespace": "shop",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {},
    "annotations": {},
}
MESSAGE: dict[str, Any] = {
    "metadata": META,
    "spec": {"appRef": {"name": "orders"}, "type": "reload-config", "payload": {"threshold": [1, {"a": "b"}]}},
    "status": {"phase": "Pending", "conditions": [], "queries": [], "results": {}},
}
SNAPSHOT: dict[str, Any] = {
    "metadata": META,
    "spec": {
        "appRef": {"name": "orders"},
        "deletionPolicy": "Retain",
        "export": {"nonce": 1, "states": [{"query": "a"}]},
    },
    "status": {"phase": "Ready", "conditions": [], "batches": {"a": 1}},
}
APP: dict[str, Any] = {
    "metadata": META,
    "spec": {
        "application": {"image": "x", "main": "local:///x.py", "args": ["a"]},
        "storage": {"uri": "s3a://bucket/place"},
        "sparkConf": {"spark.task.cpus": "1"},
        "driver": {"podTemplate": {"spec": {"tolerations": [{"key": "a"}]}}},
        "autoscaling": {"mode": "Active", "minExecutors": 1, "maxExecutors": 3},
    },
    "status": {"phase": "Running", "conditions": [], "epoch": 1},
}
WHOLE = {kind: {"metadata": META, **whole_parts(kind)} for kind in ("ControlMessage", "StreamSnapshot", "StreamingApp")}
"""With every field that there is. Lists have the short ones, whose few fields are spoilt often, and watches these."""
CONFIG = json.dumps({"executor": {"cores": 1}, "spark_conf": {"spark.task.cpus": "1"}})
POD: dict[str, Any] = {
    "metadata": {
        **META,
        "labels": {"tidegate.dev/app": "orders", "tidegate.dev/role": "driver", "tidegate.dev/epoch": "1"},
        "ownerReferences": [
            {
                "apiVersion": "tidegate.dev/v1alpha1",
                "kind": "StreamingApp",
                "name": "orders",
                "uid": "u-1",
                "controller": True,
            }
        ],
    },
    "spec": {"nodeName": "n", "containers": [{"name": "driver", "env": [{"name": CONFIG_VARIABLE, "value": CONFIG}]}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": []},
}


def encoded(good: dict[str, Any], name: str, version: int) -> bytes:
    changed = {**good, "metadata": {**good["metadata"], "name": name, "uid": name, "resourceVersion": str(version)}}
    return json.dumps(changed, separators=(",", ":")).encode()


def page(*objects: bytes) -> web.Response:
    body = b'{"metadata":{"resourceVersion":"9000"},"items":[' + b",".join(objects) + b"]}"
    return web.Response(body=body, content_type="application/json")


def reported(*objects: bytes) -> web.Response:
    lines = b"".join(b'{"type":"ADDED","object":' + each + b"}\n" for each in objects)
    return web.Response(body=lines, content_type="application/json")


def among(good: dict[str, Any], number: int, seed: int) -> list[bytes]:
    """Return hostile objects with a neighbour before, between and behind them."""
    hostile = list(hostile_objects(good, number, seed))
    middle = len(hostile) // 2
    return [
        encoded(good, "first", 1),
        *hostile[:middle],
        encoded(good, "middle", 2),
        *hostile[middle:],
        encoded(good, "last", 3),
    ]


async def until_reported(running: Callable[[], Any], done: Callable[[], bool]) -> None:
    """Run until the newest is known; whatever else happens ends the test."""
    task = asyncio.ensure_future(running())
    async with asyncio.timeout(800):
        while not done():
            assert not task.done(), task.exception()
            await asyncio.sleep(0.01)
    task.cancel()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 0.0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("kind", "good", "index", "decode"),
    [
        ("ControlMessage", MESSAGE, ControlIndex, decode_message),
        ("StreamSnapshot", SNAPSHOT, SnapshotIndex, decode_snapshot),
    ],
)
async def test_neighbours_of_hostile_objects_are_read_in_lists_and_watches(
    kind: str, good: dict[str, Any], index: Callable[[], Any], decode: Any, seed: int
) -> None:
    known = index()
    objects = among(good, NUMBER // 2, seed)
    later = among(WHOLE[kind], NUMBER // 2, seed + 1_000)
    server = PagedServer(objects, reported(*later, encoded(WHOLE[kind], "newest", 8000)))
    async with talking_to(server) as client:
        follows = lambda: follow(client, OperatorMetrics(), kind, "", known, decode, lambda _: None)  # noqa: E731 - begun later
        await until_reported(follows, lambda: known.get(("shop", "newest")) is not None)
    for name in ("first", "middle", "last"):
        assert known.get(("shop", name)) is not None
    for unreadable in known.unreadable_in("shop"):
        assert unreadable.problem


@pytest.mark.parametrize("seed", SEEDS)
async def test_neighbours_of_hostile_pods_are_read(seed: int) -> None:
    names: set[str] = set()
    server = PagedServer(among(POD, NUMBER, seed), reported(encoded(POD, "newest", 8000)))

    async def watches() -> None:
        async for change in Watch(client, "/api/v1/pods", "a=b", read_record).changes():
            found = change.items if isinstance(change, Listed) else [change.item] if isinstance(change, Changed) else []
            names.update(record.name for record in found)

    async with talking_to(server) as client:
        await until_reported(watches, lambda: "newest" in names)
    assert names >= {"first", "middle", "last"}


UNREADABLE = {"conditions": "none that are known"}


async def test_a_pod_that_cannot_be_read_stays_what_it_was_and_its_end_is_known_at_once() -> None:
    index, woken = Index(), asyncio.Queue[Any]()
    spoilt = {**POD, "status": UNREADABLE}
    server = Server(
        page(encoded(POD, "orders-driver", 10)),
        reported(encoded(spoilt, "orders-driver", 8000)),
        web.Response(status=410),
        page(encoded(spoilt, "orders-driver", 8000)),
        web.Response(body=b'{"type":"DELETED","object":' + encoded(spoilt, "orders-driver", 9500) + b"}\n"),
    )
    async with talking_to(server) as client, asyncio.timeout(120):
        task = asyncio.create_task(watch_pods(client, OperatorMetrics(), index, woken.put_nowait, ""))
        assert await woken.get() == ("shop", "orders")
        while server.answers:  # it is listed meanwhile, too
            assert [pod.phase for pod in index.pods(("shop", "orders"))] == ["Running"]
            await asyncio.sleep(0.01)
        assert await woken.get() == ("shop", "orders")
        task.cancel()
    assert index.pods(("shop", "orders")) == []


@pytest.mark.parametrize("seed", SEEDS)
async def test_neighbours_of_hostile_applications_are_read_in_lists_and_watches(seed: int) -> None:
    index = Index()
    objects = among(APP, NUMBER // 2, seed)
    later = among(WHOLE["StreamingApp"], NUMBER // 2, seed + 1_000)
    server = PagedServer(objects, reported(*later, encoded(WHOLE["StreamingApp"], "newest", 8000)))
    async with talking_to(server) as client:
        follows = lambda: watch_apps(client, OperatorMetrics(), index, lambda _: None, "")  # noqa: E731 - begun later
        await until_reported(follows, lambda: index.app(("shop", "newest")) is not None)
    for name in ("first", "middle", "last"):
        assert isinstance(index.app(("shop", name)), KnownApp)
    for key in list(index.keys()):
        known = index.app(key)
        assert isinstance(known, KnownApp) or (isinstance(known, UnreadableApp) and known.problem)


def many_values(name: str) -> bytes:
    """Return an application of 1.4 MB, of which a decoder makes more than thirty."""
    template = {"driver": {"podTemplate": {"spec": {"tolerations": "@"}}}}
    ready = {"type": "Ready", "reason": "InvalidSpec"}
    app = {**APP, "spec": {**APP["spec"], **template}, "status": {"conditions": [ready], "queries": []}}
    return encoded(app, name, 7).replace(b'"@"', b"[" + b",".join([b"{}"] * 460_000) + b"]")


async def test_of_an_application_of_too_many_values_only_its_names_and_conditions_are_decoded() -> None:
    """Eight of them, all at once, took more memory than the operator has."""
    index = Index()
    server = Server(
        page(encoded(APP, "first", 1), many_values("many")), reported(many_values("told"), encoded(APP, "b", 9))
    )
    async with talking_to(server) as client:
        follows = lambda: watch_apps(client, OperatorMetrics(), index, lambda _: None, "")  # noqa: E731 - begun later
        await until_reported(follows, lambda: index.app(("shop", "b")) is not None)
    for name in ("first", "b"):
        assert isinstance(index.app(("shop", name)), KnownApp)
    for name in ("many", "told"):
        unreadable = index.app(("shop", name))
        assert isinstance(unreadable, UnreadableApp)
        assert unreadable.problem == "spec: more than 40,000 values"
        assert (unreadable.metadata.uid, unreadable.metadata.generation) == (name, 1)
        assert unreadable.ready["reason"] == "InvalidSpec"


async def test_large_applications_are_asked_for_in_pages_that_memory_has_room_for() -> None:
    """However many there are, and each is in the index before the next is read."""
    index, long = (
        Index(),
        {**APP, "spec": {**APP["spec"], "application": {**APP["spec"]["application"], "args": ["x" * 1_400_000]}}},
    )
    server = PagedServer([encoded(long, f"a{number}", number + 1) for number in range(20)])
    async with talking_to(server) as client:
        follows = lambda: watch_apps(client, OperatorMetrics(), index, lambda _: None, "")  # noqa: E731 - begun later
        await until_reported(follows, lambda: len(index.keys()) == 20)
    assert sum(isinstance(index.app(key), KnownApp) for key in list(index.keys())) == 11
    limits = [int(request.query["limit"]) for request in server.asked if "watch" not in request.query]
    assert max(limits[limits.index(7) :]) == 7


async def test_a_line_that_never_ends_is_no_memory_for_ever() -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(2 + LONGEST_LINE // MIB):
            yield b"x" * MIB

    with pytest.raises(aiohttp.ClientError, match="longer than any object"):
        async for _ in lines_of(parts()):
            pass


def payload(text: str) -> bytes:
    return encoded({**MESSAGE, "spec": {**MESSAGE["spec"], "payload": "@"}}, "m", 1).replace(b'"@"', text.encode())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps("x" * (LARGEST_PAYLOAD + 1)), "PayloadTooLarge"),
        (json.dumps("x" * 1_400_000), "PayloadTooLarge"),
        (nested(66), "InvalidPayload"),
        (nested(90), "InvalidPayload"),
    ],
)
def test_a_payload_that_no_driver_takes_fails_with_what_to_do(text: str, reason: str) -> None:
    message = decode_message(payload(text))
    plan = decide_control(observe_running(message), 1_800_000_000.0)
    (write,) = [action for action in plan.actions if type(action).__name__ == "WriteMessageStatus"]
    status = write.status  # type: ignore[union-attr] # it is one
    assert (status.phase, status.conditions[0].reason) == (MessagePhase.FAILED, reason)
    assert "send its address" in status.conditions[0].message


def test_a_payload_that_is_too_long_is_not_kept() -> None:
    message = decode_message(payload(json.dumps("x" * 1_400_000)))
    assert is_too_large(message)
    assert len(bytes(message.spec.payload)) < 10


def test_a_payload_that_is_too_long_is_refused_before_it_is_decoded() -> None:
    """No decoder of Python reads this number."""
    with pytest.raises(UnreadableAppError):
        decode_message(payload("[1e999]"))
    assert is_too_large(decode_message(payload('[1e999,"' + "x" * LARGEST_PAYLOAD + '"]')))


@pytest.mark.parametrize("written", ["\\u003c", "\\u2028", "\\u00d6", "\\n", "\\u0001", "\\ud83c\\udf00"])
def test_a_payload_counts_as_what_it_says_however_the_api_server_writes_it(written: str) -> None:
    length = len(msgspec.json.encode(json.loads(f'"{written}"'))) - 2
    fits = (LARGEST_PAYLOAD - 2) // length
    assert not is_too_large(decode_message(payload('"' + written * fits + '"')))
    assert is_too_large(decode_message(payload('"' + written * (fits + 1) + '"')))


def test_backslashes_before_a_u_are_no_escapes() -> None:
    """They would look as if the payload were a sixth of what it is."""
    assert is_too_large(decode_message(payload('[1e999,"' + "\\\\u003c" * (LARGEST_PAYLOAD // 4) + '"]')))
