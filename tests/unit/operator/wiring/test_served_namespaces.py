"""A namespace that the operator may not read keeps no other one waiting. Runs a process, and a server for it."""

import asyncio
import base64
import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tidegate.access.keys import KEY_BYTES
from tidegate.wiring import served_namespaces
from tidegate.wiring.running_operator import Operator
from tidegate.wiring.served_namespaces import find_served, wait_until_readable
from tidegate_testing.kubectl import write_kubeconfig
from tidegate_testing.operator_process import OperatorProcess
from tidegate_testing.scripted_server import Server, listing, talking_to
from tidegate_testing.waiting import wait_for

KINDS = ("pods", "streamingapps", "streamsnapshots", "controlmessages")
ALONE = {"TIDEGATE_LEADER_ELECTION": "false", "POD_NAMESPACE": "system"}


class Rights(Server):
    """A server on which what is named here cannot be listed; nothing exists, and nothing happens."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = set(refused)
        """``<namespace>/<plural>``."""
        self.code = 403

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        *_, namespace, plural = ("", *request.path.split("/"))
        if request.path in {"/api", "/apis"}:
            return web.json_response({"versions": [], "groups": []})
        if plural == "tidegate-agent-key":
            return web.json_response({"data": {"key": base64.b64encode(b"k" * KEY_BYTES).decode()}})
        if plural == "v1alpha1":
            return web.json_response({"resources": [{"name": kind} for kind in KINDS]})
        if f"{namespace}/{plural}" in self.refused:
            status = {"kind": "Status", "code": self.code, "message": f"cannot list {plural} in {namespace}"}
            return web.json_response(status, status=self.code)
        if "watch" in request.query:
            await asyncio.sleep(3600)
        return listing(9)


async def test_an_operator_begins_although_it_may_not_read_one_of_its_namespaces(tmp_path: Path) -> None:
    """Whoever deletes a namespace deletes the operator's Role in it: after the next drain, nobody was served."""
    server = Rights(*(f"gone/{kind}" for kind in KINDS))
    settings = {**ALONE, "TIDEGATE_WATCH_NAMESPACES": "gone,shop"}
    async with talking_to(server) as client, asyncio.timeout(60):
        operator = OperatorProcess(write_kubeconfig(tmp_path, client.server), tmp_path / "log", settings)
        operator.start()
        await asyncio.to_thread(wait_for, "the operator to be ready", operator.is_ready, 30, 0.1)
        status = await asyncio.to_thread(operator.end, signal.SIGTERM)
    assert status == 0, operator.log.read_text()
    lines = [json.loads(line) for line in operator.log.read_text().splitlines() if "namespace left out" in line]
    assert [(line["namespace"], line["answer"]) for line in lines] == [("gone", "cannot list pods in gone")]


class Pauses:
    """Passes no time, and changes the world in each pause."""

    def __init__(self, *changes: set[str]) -> None:
        self.changes = list(changes)
        self.server: Rights | None = None
        self.number = 0

    async def __call__(self, seconds: float) -> None:
        assert seconds > 0
        assert self.server is not None
        self.number += 1
        if self.changes:
            self.server.refused = self.changes.pop(0)


async def served(server: Rights, namespaces: tuple[str, ...], *changes: set[str]) -> tuple[str, ...]:
    pauses = Pauses(*changes)
    pauses.server = server
    async with talking_to(server) as client, asyncio.timeout(20):
        return await find_served(client, namespaces, pauses)


async def test_all_namespaces_are_asked_for_nothing() -> None:
    server = Rights()
    assert await served(server, ()) == ()
    assert server.asked == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_namespace_in_which_one_kind_cannot_be_listed_is_left_out(kind: str) -> None:
    """Without its pods, an application looks as if it had lost its driver."""
    assert await served(Rights(f"gone/{kind}"), ("gone", "shop")) == ("shop",)


async def test_rights_that_come_a_moment_later_are_waited_for() -> None:
    assert await served(Rights("new/pods"), ("new", "shop"), set()) == ("new", "shop")


async def test_an_operator_that_may_read_no_namespace_waits_until_it_may() -> None:
    nothing = {"a/pods", "b/pods"}
    assert await served(Rights(*nothing), ("a", "b"), *[nothing] * 20, {"b/pods"}) == ("a",)


@pytest.mark.parametrize("code", [404, 429, 500, 503])
async def test_an_api_server_that_fails_takes_nothing_away(code: int) -> None:
    """Whoever lists asks it again."""
    server = Rights("shop/pods")
    server.code = code
    assert await served(server, ("shop", "web")) == ("shop", "web")


async def test_a_namespace_that_was_left_out_is_checked_until_all_of_it_can_be_read() -> None:
    server = Rights("gone/pods", "far/pods")
    pauses = Pauses({"gone/pods", "far/pods"}, {"gone/controlmessages", "far/pods"}, {"far/pods"})
    pauses.server = server
    async with talking_to(server) as client, asyncio.timeout(20):
        assert await wait_until_readable(client, ("far", "gone"), pauses) == "gone"
    assert pauses.number == 3


async def test_an_api_server_that_fails_makes_nothing_readable() -> None:
    server = Rights("gone/pods")
    server.code = 503
    pauses = Pauses({"gone/pods"}, {"gone/pods"}, set())
    pauses.server = server
    async with talking_to(server) as client, asyncio.timeout(20):
        assert await wait_until_readable(client, ("gone",), pauses) == "gone"
    assert pauses.number == 3


async def test_an_operator_ends_in_order_once_it_may_read_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_namespaces, "_LONG_PAUSE", 0.05)
    unused: Any = None
    server = Rights("gone/pods")
    async with talking_to(server) as client, asyncio.timeout(20):
        kopf: asyncio.Task[Any] = asyncio.create_task(asyncio.Event().wait())
        rest = (unused, unused, unused, unused)
        operator = Operator(unused, unused, client, *rest, asyncio.Event(), kopf=kopf)
        task = operator.supervise(partial(operator.begin_anew, ("gone",)), "namespaces")
        await asyncio.to_thread(wait_for, "a check of the namespace", lambda: server.asked, 10, 0.05)
        assert (kopf.done(), operator.failed) == (False, False)
        server.refused.clear()
        with pytest.raises(asyncio.CancelledError):
            await kopf
        await task
    assert operator.failed
