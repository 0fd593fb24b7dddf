"""Requests that are repeated, and watches that survive gaps. A real HTTP server, on 127.0.0.1 in this process."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from tidegate.kube import client, watch
from tidegate.kube.client import Guard, KubeClient, always
from tidegate.kube.connection import Connection
from tidegate.kube.failures import Forbidden, NotFound, Unavailable
from tidegate.kube.watch import Changed, Listed, Removed, Watch
from tidegate.leadership import NotLeadingError
from tidegate.metrics.figures import Figures

PATH = "/api/v1/pods"


class Meta(msgspec.Struct):
    name: str


class Thing(msgspec.Struct):
    metadata: Meta


class Server:
    """Gives prepared answers in their order, and notes what was asked."""

    def __init__(self, *answers: web.Response) -> None:
        self.answers = list(answers)
        self.asked: list[web.Request] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if not self.answers:
            await asyncio.sleep(3600)  # a watch on which nothing happens
        return self.answers.pop(0)


@asynccontextmanager
async def talking_to(server: Server, connections: int = 32, guard: Guard = always) -> AsyncIterator[KubeClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    connection = Connection(configuration, ssl.create_default_context())
    try:
        async with KubeClient(connection, Figures(), connections, guard) as made:
            yield made
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LONGEST_PAUSE", 0.0)
    monkeypatch.setattr(client, "_backoff", lambda state: 0.0)
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 0.0)


def thing(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def listing(version: int, *names: str, more: str = "") -> web.Response:
    metadata = {"resourceVersion": str(version), "continue": more}
    return web.json_response({"metadata": metadata, "items": [thing(name, version) for name in names]})


def events(*pairs: tuple[str, dict[str, Any]]) -> web.Response:
    lines = [json.dumps({"type": kind, "object": about}) for kind, about in pairs]
    return web.Response(text="".join(f"{line}\n" for line in lines))


async def first_changes(server: Server, count: int) -> list[tuple[str, list[str]]]:
    """Return the first changes that a watch yields, as kind and names."""
    seen: list[tuple[str, list[str]]] = []
    async with talking_to(server) as kube, asyncio.timeout(20):
        async for change in Watch(kube, PATH, "a=b", Thing).changes():
            items = change.items if isinstance(change, Listed) else [change.item]
            seen.append((type(change).__name__, [item.metadata.name for item in items]))
            if len(seen) == count:
                break
    return seen


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_a_fault_that_passes_is_not_seen_by_the_caller(code: int) -> None:
    server = Server(web.Response(status=code, headers={"Retry-After": "1"}), web.json_response(thing("a", 1)))
    async with talking_to(server) as kube:
        assert await kube.get(PATH, Thing) == Thing(Meta("a"))


async def test_a_fault_that_stays_is_returned_after_four_attempts() -> None:
    server = Server(*(web.Response(status=503) for _ in range(9)))
    async with talking_to(server) as kube:
        assert isinstance(await kube.get(PATH, Thing), Unavailable)
    assert len(server.asked) == 4


@pytest.mark.parametrize(("code", "kind"), [(403, Forbidden), (404, NotFound)])
async def test_a_refusal_is_returned_at_once(code: int, kind: type[Any]) -> None:
    server = Server(web.Response(status=code))
    async with talking_to(server) as kube:
        assert isinstance(await kube.get(PATH, Thing), kind)
    assert len(server.asked) == 1


async def test_a_long_list_is_read_page_by_page() -> None:
    server = Server(listing(5, "a", more="next"), listing(5, "b"))
    assert await first_changes(server, 1) == [(Listed.__name__, ["a", "b"])]
    assert server.asked[1].query["continue"] == "next"


async def test_changes_follow_the_list() -> None:
    server = Server(listing(5, "a"), events(("ADDED", thing("b", 6)), ("DELETED", thing("a", 7))))
    expected = [(Listed.__name__, ["a"]), (Changed.__name__, ["b"]), (Removed.__name__, ["a"])]
    assert await first_changes(server, 3) == expected


async def test_a_watch_that_ended_goes_on_after_the_last_bookmark() -> None:
    server = Server(listing(5), events(("BOOKMARK", thing("", 9))), events(("ADDED", thing("b", 10))))
    await first_changes(server, 2)
    assert [request.query.get("resourceVersion") for request in server.asked] == [None, "5", "9"]


EXPIRED = {
    "as the answer to the request": lambda: web.Response(status=410),
    "as an event": lambda: events(("ERROR", {"code": 410, "message": "too old resource version"})),
}


@pytest.mark.parametrize("how", EXPIRED)
async def test_an_expired_version_leads_to_a_new_list(how: str) -> None:
    server = Server(listing(5, "a"), EXPIRED[how](), listing(50, "b"))
    assert await first_changes(server, 2) == [(Listed.__name__, ["a"]), (Listed.__name__, ["b"])]


@pytest.mark.parametrize(
    "interruption",
    [
        lambda: web.Response(status=500),
        lambda: web.Response(text="no JSON\n"),
        lambda: events(("ERROR", {"code": 500, "message": "etcd"})),
    ],
)
async def test_an_interrupted_watch_goes_on_from_where_it_was(interruption: Callable[[], web.Response]) -> None:
    server = Server(listing(5), interruption(), events(("ADDED", thing("b", 6))))
    assert (await first_changes(server, 2))[1] == (Changed.__name__, ["b"])
    assert [request.query.get("resourceVersion") for request in server.asked] == [None, "5", "5"]


async def test_open_watches_leave_the_connections_to_the_requests() -> None:
    server = Server()
    watching, open_watches = asyncio.Event(), 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal open_watches
        if "watch" not in request.query:
            return listing(5)
        open_watches += 1
        if open_watches == 3:
            watching.set()
        await asyncio.sleep(3600)
        return web.Response()

    server.answer = answer  # type: ignore[method-assign] # by what is asked, not by when

    async def follow(kube: KubeClient) -> None:
        async for _ in Watch(kube, PATH, "a=b", Thing).changes():
            pass

    async with talking_to(server, connections=1) as kube, asyncio.timeout(20):
        tasks = [asyncio.create_task(follow(kube)) for _ in range(3)]
        await watching.wait()
        assert isinstance(await kube.get(PATH, watch.Listing[Thing]), watch.Listing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- writes and the leadership ---


def permissions(*answers: bool) -> Callable[[], bool]:
    """A guard that gives these answers in their order."""
    left = list(answers)
    return lambda: left.pop(0)


WRITES: dict[str, Callable[[KubeClient], Awaitable[Any]]] = {
    "create": lambda kube: kube.create(PATH, thing("a", 1), Thing),
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
