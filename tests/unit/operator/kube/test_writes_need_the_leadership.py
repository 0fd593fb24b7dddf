"""Nothing is changed by a process that does not lead. A real HTTP server, on 127.0.0.1 in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tidegate.kube import client
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import Unavailable
from tidegate.kube.leadership import NotLeadingError
from tidegate_testing.scripted_server import Server, talking_to

PATH = "/api/v1/pods"


class Meta(msgspec.Struct):
    name: str


class Thing(msgspec.Struct):
    metadata: Meta


def thing(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LONGEST_PAUSE", 0.0)


def permissions(*answers: bool) -> Callable[[], bool]:
    """A guard that gives these answers in their order."""
    left = list(answers)
    return lambda: left.pop(0)


WRITES: dict[str, Callable[[KubeClient], Awaitable[Any]]] = {
    "create": lambda kube: kube.create(PATH, thing("a", 1), Thing),
    "trial": lambda kube: kube.try_out(PATH, thing("a", 1), patience=10.0),
    "patch": lambda kube: kube.merge_patch(PATH, thing("a", 1), Thing),
    "delete": lambda kube: kube.delete(PATH),
    "delete of one version": lambda kube: kube.delete(PATH, "uid", "1"),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("when", ["before a connection is looked for", "when the body is about to leave"])
async def test_nothing_is_sent_without_the_leadership(write: str, when: str) -> None:
    server = Server(web.json_response(thing("a", 1)))
    guard = permissions(False) if when.startswith("before") else permissions(True, False)
    async with talking_to(server, guard=guard) as kube, asyncio.timeout(20):
        with pytest.raises(NotLeadingError):
            await WRITES[write](kube)
    assert server.asked == []


async def test_the_guard_is_asked_before_each_attempt() -> None:
    server = Server(*(web.Response(status=503) for _ in range(9)))
    async with talking_to(server, guard=permissions(True, True, True, True, False)) as kube, asyncio.timeout(20):
        with pytest.raises(NotLeadingError):
            await kube.delete(PATH)
    assert len(server.asked) == 2


async def test_reads_and_what_the_guard_rests_on_need_no_leadership() -> None:
    server = Server(*(web.json_response(thing("a", 1)) for _ in range(2)))
    async with talking_to(server, guard=lambda: False) as kube:
        assert await kube.get(PATH, Thing) == Thing(Meta("a"))
        assert await kube.send_beside("PATCH", PATH, Thing, thing("a", 1), patience=20.0) == Thing(Meta("a"))


async def test_what_the_guard_rests_on_is_tried_once_and_not_for_long() -> None:
    server = Server(web.Response(status=503))
    async with talking_to(server) as kube:
        assert isinstance(await kube.send_beside("GET", PATH, Thing, patience=20.0), Unavailable)
        assert isinstance(await kube.send_beside("GET", PATH, Thing, patience=0.05), Unavailable)
    assert len(server.asked) == 2
