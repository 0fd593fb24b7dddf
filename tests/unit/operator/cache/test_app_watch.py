"""How applications come into the index, and how it hears that they are gone. A real HTTP server, on 127.0.0.1."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tidegate.cache.app_watch import watch_apps
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.engine.resource_key import Key
from tidegate.kube import watch
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.scripted_server import Server, events, listing, talking_to
from tidegate_testing.values import body

KEY, BILLS = ("shop", "orders"), ("shop", "bills")


def stored(version: int, name: str = "orders", uid: str = "u-1", **spec: Any) -> dict[str, Any]:
    resource = body(spec)
    return {**resource, "metadata": {**resource["metadata"], "name": name, "uid": uid, "resourceVersion": str(version)}}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 0.0)


async def woken_by(server: Server, index: Index, number: int) -> list[Key]:
    """Return the first applications that are woken because of what the server tells, once it has told everything."""
    woken: asyncio.Queue[Key] = asyncio.Queue()
    async with talking_to(server) as client, asyncio.timeout(20):
        task = asyncio.create_task(watch_apps(client, OperatorMetrics(), index, woken.put_nowait, ""))
        keys = [await woken.get() for _ in range(number)]
        while server.answers:
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return keys + [woken.get_nowait() for _ in range(woken.qsize())]


END = stored(9)
TOLD: dict[str, Callable[[], tuple[web.Response, ...]]] = {
    "by the watch": lambda: (events(("DELETED", END)),),
    "by the watch, of one that cannot be read": lambda: (events(("DELETED", {**END, "spec": 7})),),
    "by nobody, while the watch was not open": lambda: (web.Response(status=410), listing(50)),
    "by nobody, before the watch was ended as expired": lambda: (
        events(("ERROR", {"code": 410, "message": "too old"})),
        listing(50),
    ),
}


@pytest.mark.parametrize("how", TOLD)
async def test_an_application_that_is_gone_is_forgotten_and_looked_at(how: str) -> None:
    index = Index()
    assert await woken_by(Server(listing(8, stored(7)), *TOLD[how]()), index, 2) == [KEY, KEY]
    assert (index.app(KEY), index.put_app(stored(7))) == (None, set())


async def test_one_watch_brings_the_whole_of_each_and_what_is_known_already_is_no_news() -> None:
    index = Index()
    own = {**stored(9), "metadata": {**stored(9)["metadata"], "generation": 3}}
    index.put_app(own)  # the answer to a write of our own
    changes = events(("MODIFIED", own), ("MODIFIED", stored(10, **{"application.image": "x:2"})))
    server = Server(listing(8, stored(7)), changes)
    assert await woken_by(server, index, 1) == [KEY]
    known = index.app(KEY)
    assert isinstance(known, KnownApp)
    assert (known.metadata.resource_version, known.app.spec.application.image) == ("10", "x:2")
    assert {request.path for request in server.asked} == {"/apis/tidegate.dev/v1alpha1/streamingapps"}


async def test_a_list_that_breaks_off_is_no_list_and_what_it_had_is_known() -> None:
    index = Index()
    index.replace_pods([], "", "9")
    answers = (
        listing(8, stored(7), more="page 2"),
        web.Response(status=410),
        listing(9, stored(7), stored(8, "bills", "u-2")),
    )
    server = Server(*answers[:2])
    assert await woken_by(server, index, 1) == [KEY]
    assert not index.initial_sync.complete.is_set()
    assert await woken_by(Server(answers[2]), index, 1) == [BILLS]
    assert index.initial_sync.complete.is_set()


async def test_an_application_that_cannot_be_read_is_known_as_such_with_its_field_and_keeps_no_other_out() -> None:
    index = Index()
    odd = {**stored(8, "bills", "u-2"), "spec": {"application": {"image": 7}}}
    assert await woken_by(Server(listing(9, odd, stored(7)), events(("MODIFIED", stored(10)))), index, 3) == [
        BILLS,
        KEY,
        KEY,
    ]
    unreadable = index.app(BILLS)
    assert isinstance(unreadable, UnreadableApp)
    assert unreadable.problem.startswith("spec.application")
    assert unreadable.metadata.uid == "u-2"


async def test_an_application_that_even_its_decoder_fails_on_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index()
    monkeypatch.setattr("tidegate.cache.known_apps.decode_app", lambda _: 1 / 0)
    assert await woken_by(Server(listing(9, stored(7))), index, 1) == [KEY]
    unreadable = index.app(KEY)
    assert isinstance(unreadable, UnreadableApp)
    assert unreadable.problem == "ZeroDivisionError: division by zero"
