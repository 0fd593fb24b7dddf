"""Requests that are repeated, and watches that survive gaps. A real HTTP server, on 127.0.0.1 in this process."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tidegate.kube import client, watch
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import Forbidden, NotFound, TooLong, Unavailable
from tidegate.kube.history import RestoredError
from tidegate.kube.lines import lines_of
from tidegate.kube.watch import Changed, Listed, Removed, Watch
from tidegate_testing import scripted_server
from tidegate_testing.scripted_server import PagedServer, Server, events, talking_to

PATH = "/api/v1/pods"


class Meta(msgspec.Struct):
    name: str


class Thing(msgspec.Struct):
    metadata: Meta


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LONGEST_PAUSE", 0.0)
    monkeypatch.setattr(client, "_backoff", lambda state: 0.0)
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 0.0)


def thing(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def listing(version: int, *names: str, more: str = "") -> web.Response:
    return scripted_server.listing(version, *(thing(name, version) for name in names), more=more)


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


async def test_what_is_only_tried_is_not_waited_for() -> None:
    server = Server(web.json_response(thing("a", 1), status=201))
    async with talking_to(server) as kube, asyncio.timeout(20):
        assert await kube.try_out(PATH, thing("a", 1), patience=10.0) is None
        (asked,) = server.asked
        assert (asked.method, dict(asked.query)) == ("POST", {"dryRun": "All", "fieldValidation": "Strict"})
        assert isinstance(await kube.try_out(PATH, thing("a", 1), patience=0.05), Unavailable)
        assert len(server.asked) <= 2, "once"


async def test_what_can_be_done_without_is_asked_once_and_not_read_beyond_its_length() -> None:
    server = Server(
        web.json_response(thing("a", 1)), web.json_response(thing("a" * 10**6, 1)), web.Response(status=503)
    )
    async with talking_to(server) as kube, asyncio.timeout(20):
        assert await kube.read_once(PATH, Thing, patience=10.0, longest=1000) == Thing(Meta("a"))
        assert await kube.read_once(PATH, Thing, patience=10.0, longest=1000) == TooLong(
            "the answer is longer than 1000 bytes"
        )
        assert isinstance(await kube.read_once(PATH, Thing, patience=10.0, longest=1000), Unavailable)
    assert len(server.asked) == 3


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_no_write_counts_as_done(code: int) -> None:
    """A redirected write becomes a read of wherever it leads, which answers 200."""
    away = [web.Response(status=code, headers={"Location": "/elsewhere"}) for _ in range(4)]
    server = Server(*away, web.json_response(thing("a", 1)))
    async with talking_to(server) as kube:
        answer = await kube.create(PATH, thing("a", 1), Thing)
    assert isinstance(answer, Unavailable)
    assert f"HTTP {code} to /elsewhere" in answer.message
    assert {asked.path for asked in server.asked} == {PATH}


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


def long_things(number: int, length: int) -> list[bytes]:
    return [json.dumps(thing(f"{each} ".ljust(length, "x"), 5)).encode() for each in range(number)]


async def test_a_list_of_long_objects_is_read_in_pages_that_are_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of objects of 1.4 MB, which anybody may create, would fill the memory of whoever lists 500 at a time."""
    monkeypatch.setattr(watch, "_LONGEST_PAGE", 50_000)
    server = PagedServer(long_things(40, 10_000))
    ((kind, names),) = await first_changes(server, 1)
    assert (kind, [int(name.split()[0]) for name in names]) == (Listed.__name__, list(range(40)))
    limits = [int(request.query["limit"]) for request in server.asked]
    assert limits[:4] == [500, 125, 31, 7], "each was too long"
    assert set(limits[4:]) == {1}, "the limit stays as it was found"
    assert len(limits) == 4 + 40


async def test_an_object_that_is_longer_than_any_can_be_is_no_reason_to_ask_at_once_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "_LONGEST_PAGE", 50_000)
    server, pauses = PagedServer(long_things(1, 60_000)), 0

    async def sleep(_: float) -> None:
        nonlocal pauses
        pauses += 1
        server.objects = long_things(1, 10)

    async with talking_to(server) as kube, asyncio.timeout(20):
        async for change in Watch(kube, PATH, "a=b", Thing, sleep=sleep).changes():
            assert isinstance(change, Listed)
            break
    assert pauses == 1


async def test_objects_of_a_page_are_read_before_the_next_page_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing of a page has to be kept but what was made of it."""
    server, asked = PagedServer(long_things(3, 1)), []

    def read(body: msgspec.Raw) -> Thing:
        asked.append(len(server.asked))
        return msgspec.json.decode(body, type=Thing)

    monkeypatch.setattr(watch, "_PAGE", 1)
    async with talking_to(server) as kube, asyncio.timeout(20):
        async for change in Watch(kube, PATH, "a=b", read).changes():
            assert isinstance(change, Listed)
            assert [thing.metadata.name for thing in change.items] == ["0 ", "1 ", "2 "]
            break
    assert asked == [1, 2, 3]


async def test_changes_follow_the_list() -> None:
    server = Server(listing(5, "a"), events(("ADDED", thing("b", 6)), ("DELETED", thing("a", 7))))
    expected = [(Listed.__name__, ["a"]), (Changed.__name__, ["b"]), (Removed.__name__, ["a"])]
    assert await first_changes(server, 3) == expected


async def test_a_watch_that_ended_goes_on_after_the_last_bookmark() -> None:
    server = Server(listing(5), events(("BOOKMARK", thing("", 9))), events(("ADDED", thing("b", 10))))
    await first_changes(server, 2)
    assert [request.query.get("resourceVersion") for request in server.asked] == [None, "5", "9"]


async def lines_from(*chunks: bytes) -> list[tuple[bytes, bytes]]:
    async def pieces() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [line async for line in lines_of(pieces())]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_lines_are_the_same_however_they_are_split(size: int) -> None:
    text = b"a\n\nbcd\n" + b"e" * 20 + b"\n\nrest"
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    ended = [(line, b"\n") for line in (b"a", b"", b"bcd", b"e" * 20, b"")]
    assert await lines_from(*pieces) == [*ended, (b"rest", b"")]
    assert await lines_from(*pieces, b"\n") == [*ended, (b"rest", b"\n")]


async def test_a_long_line_in_small_pieces_is_put_together_once() -> None:
    """Whoever puts what there is together with each piece copies a terabyte."""
    ((line, end),) = await lines_from(*[b"x" * 8] * 500_000, b"\n")
    assert (len(line), end) == (4_000_000, b"\n")


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


async def test_a_watch_is_over_when_the_server_was_restored_to_an_earlier_version() -> None:
    """It accepts a watch from the later version that was seen, and says nothing of what happens until it is there."""
    server = Server(listing(5, "a"), events(("ADDED", thing("b", 9))), events(("MODIFIED", thing("a", 8))))
    server.newest = 7
    with pytest.raises(RestoredError, match="is at resource version 7, after 9 was seen"):
        await first_changes(server, 3)
    assert len(server.asked) == 2


async def test_a_watch_is_over_when_the_list_after_a_gap_is_older_than_what_was_seen() -> None:
    server = Server(listing(5, "a"), events(("ADDED", thing("b", 9))), web.Response(status=410), listing(7, "a"))
    server.newest = 9
    with pytest.raises(RestoredError, match="is at resource version 7, after 9 was seen"):
        await first_changes(server, 3)


async def test_a_server_that_cannot_say_at_which_version_it_is_is_asked_again() -> None:
    class Starting(Server):
        failures = 2

        async def answer(self, request: web.Request) -> web.StreamResponse:
            if request.query.get("limit") == "1" and self.failures:
                self.failures -= 1
                return web.Response(status=503)
            return await super().answer(request)

    server = Starting(listing(5), web.Response(status=500), events(("ADDED", thing("b", 6))))
    assert (await first_changes(server, 2))[1] == (Changed.__name__, ["b"])


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


async def pauses_of_watch(server: Server, count: int, seconds_per_stream: float = 0.0) -> list[float]:
    """Return how long a watch waits before it asks again, the first so many times; each stream lives that long."""
    pauses: list[float] = []
    now = 0.0
    enough = asyncio.Event()

    def clock() -> float:
        nonlocal now
        now += seconds_per_stream  # read once when a stream begins, and when it has ended
        return now

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == count:
            enough.set()
            await asyncio.sleep(3600)

    async def follow(kube: KubeClient) -> None:
        async for _ in Watch(kube, PATH, "a=b", Thing, clock=clock, sleep=sleep).changes():
            pass

    async with talking_to(server) as kube, asyncio.timeout(20):
        task = asyncio.create_task(follow(kube))
        await enough.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return pauses


ENDED_AT_ONCE: dict[str, Callable[[], web.Response]] = {
    "without a word": events,
    "after a change": lambda: events(("ADDED", thing("b", 6))),
    "with an error": lambda: web.Response(status=500),
}


@pytest.mark.parametrize("how", ENDED_AT_ONCE)
async def test_a_server_that_ends_each_watch_at_once_is_asked_with_growing_pauses(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 4.0)
    server = Server(listing(5), *(ENDED_AT_ONCE[how]() for _ in range(5)))
    assert await pauses_of_watch(server, 5) == [0.5, 1.0, 2.0, 4.0, 4.0]


async def test_a_watch_that_lived_a_while_begins_anew_without_a_pause_and_after_an_error_with_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 4.0)
    error = ("ERROR", {"code": 500, "message": "etcd"})
    server = Server(listing(5), events(), events(error), events(), events(error))
    assert await pauses_of_watch(server, 2, seconds_per_stream=60.0) == [0.5, 0.5]
    assert len(server.asked) == 5


def named(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"namespace": "shop", "name": name, "uid": f"u-{name}", "resourceVersion": str(version)}}


async def test_one_by_one_each_of_a_list_comes_before_the_list_that_says_which_there_are() -> None:
    broken = {"metadata": {**named("c", 5)["metadata"], "name": 7}}
    server = Server(
        scripted_server.listing(5, named("a", 1), more="page 2"),
        scripted_server.listing(5, named("b", 5), {**named("c", 5), "spoilt": 1}, broken),
        events(("DELETED", {**named("a", 6), "spoilt": 1}), ("ADDED", named("d", 7))),
    )

    def read(body: msgspec.Raw) -> str:
        assert b"spoilt" not in bytes(body)
        return msgspec.json.decode(body, type=Thing).metadata.name

    def gone(body: msgspec.Raw) -> str:
        return f"{msgspec.json.decode(body, type=Thing).metadata.name} is gone"

    seen: list[object] = []
    async with talking_to(server) as kube, asyncio.timeout(20):
        async for change in Watch(kube, PATH, "", read, gone=gone, one_by_one=True).changes():
            seen.append(change)
            if len(seen) == 5:
                break
    there = frozenset({"u-a", "u-b", "u-c"})
    listed: Listed[str] = Listed([], "5", frozenset({"u-c"}), there)
    assert seen == [Changed("a"), Changed("b"), listed, Removed("a is gone"), Changed("d")]
    assert all("labelSelector" not in request.query for request in server.asked)


async def test_a_list_that_begins_again_one_by_one_forgets_which_there_were() -> None:
    server = Server(
        scripted_server.listing(5, named("a", 1), more="page 2"),
        web.Response(status=410),
        scripted_server.listing(6, named("b", 5)),
    )
    seen: list[object] = []
    async with talking_to(server) as kube, asyncio.timeout(20):
        async for change in Watch(kube, PATH, "", Thing, one_by_one=True).changes():
            seen.append(change.uids if isinstance(change, Listed) else change)
            if len(seen) == 3:
                break
    assert seen == [Changed(Thing(Meta("a"))), Changed(Thing(Meta("b"))), frozenset({"u-b"})]


async def test_others_get_a_turn_while_a_long_list_is_taken_in_one_by_one() -> None:
    server = Server(scripted_server.listing(5, *(named(f"a{number}", 1) for number in range(100))))
    turns, at = 0, list[int]()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with talking_to(server) as kube, asyncio.timeout(20):
        other = asyncio.create_task(others())
        async for change in Watch(kube, PATH, "", Thing, one_by_one=True).changes():
            if isinstance(change, Listed):
                break
            at.append(turns)
        other.cancel()
    assert len(at) == 100
    assert len(set(at)) >= 6


async def test_a_list_whose_items_are_null_is_empty() -> None:
    server = Server(
        web.json_response({"metadata": {"resourceVersion": "5"}, "items": None}), events(("ADDED", thing("a", 6)))
    )
    assert await first_changes(server, 2) == [("Listed", []), ("Changed", ["a"])]


async def test_a_long_object_is_read_in_another_thread() -> None:
    """A megabyte takes a decoder so long that the event loop would stand still for all others."""
    threads: list[threading.Thread] = []

    def read(body: msgspec.Raw) -> str:
        threads.append(threading.current_thread())
        return msgspec.json.decode(body, type=Thing).metadata.name

    long = {**thing("long", 2), "spec": "x" * 100_000}
    server = Server(scripted_server.listing(5, thing("short", 1), long), events(("ADDED", long)))
    async with talking_to(server) as kube, asyncio.timeout(20):
        changes = Watch(kube, PATH, "", read).changes()
        assert await anext(changes) == Listed(["short", "long"], "5")
        assert await anext(changes) == Changed("long")
    assert [thread is threading.main_thread() for thread in threads] == [True, False, False]


async def test_the_servers_clock_is_compared_with_ours_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    dates = ("Fri, 15 Jan 2027 08:00:00 GMT", "Fri, 15 Jan 2027 09:00:00 GMT", "no date")
    server = Server(*(web.json_response(thing("a", 1), headers={"Date": date}) for date in dates))
    monkeypatch.setattr("tidegate.kube.client.time.time", lambda: 1_800_000_007.0)
    seen = []
    async with talking_to(server) as kube:
        seen.append(kube.clock_skew())
        for again_after in (30.0, 30.0, -1.0):
            monkeypatch.setattr(client, "_COMPARED_AGAIN_AFTER", again_after)
            await kube.get(PATH, Thing)
            seen.append(kube.clock_skew())
    assert seen == [0.0, 7.0, 7.0, 7.0]


async def test_an_answer_with_a_warning_for_each_of_a_thousand_fields_is_read() -> None:
    warned = web.json_response(thing("a", 1))
    for number in range(1_000):
        warned.headers.add("Warning", f'299 - "unknown field f{number}"')
    async with talking_to(Server(warned)) as asking:
        assert await asking.get(f"{PATH}/a", Thing) == Thing(Meta("a"))
