"""The operator's key: made once, by whichever process is first, and the same for all. Against prepared answers."""

import asyncio
import base64
import json
from typing import Any

import pytest
from aiohttp import web

from tidegate.access import key_secret
from tidegate.access.key_secret import find_keys
from tidegate.access.keys import KEY_BYTES, OperatorKeys
from tidegate_testing.scripted_server import Server, talking_to

PATH = "/api/v1/namespaces/system/secrets/tidegate-agent-key"
RAW = b"k" * KEY_BYTES


def secret(content: bytes = RAW) -> web.Response:
    return web.json_response({"data": {"key": base64.b64encode(content).decode()}})


def refusal(code: int, reason: str = "") -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": "no"}, status=code)


async def found(server: Server) -> OperatorKeys:
    """Return what a process finds that does not lead: of that, nobody has asked yet."""
    async with talking_to(server, guard=lambda: False) as client, asyncio.timeout(60):
        return await find_keys(client, "system", "tidegate-agent-key")


async def test_a_key_that_is_there_is_read_and_nothing_is_written() -> None:
    server = Server(secret())
    assert (await found(server)).id == OperatorKeys(RAW).id
    assert [(request.method, request.path) for request in server.asked] == [("GET", PATH)]


async def test_the_first_process_makes_one_and_reads_it_back() -> None:
    class Keeping(Server):
        kept: dict[str, Any]

        async def answer(self, request: web.Request) -> web.StreamResponse:
            if request.method == "POST":
                self.kept = await request.json()
            return await super().answer(request)

    server = Keeping(refusal(404, "NotFound"), web.json_response({}, status=201), secret())
    assert (await found(server)).id == OperatorKeys(RAW).id
    assert [request.method for request in server.asked] == ["GET", "POST", "GET"]
    assert server.kept["metadata"] == {
        "name": "tidegate-agent-key",
        "namespace": "system",
        "labels": {"app.kubernetes.io/managed-by": "tidegate"},
    }
    assert len(base64.urlsafe_b64decode(server.kept["stringData"]["key"] + "=")) == KEY_BYTES


async def test_of_two_that_make_one_at_once_both_have_the_one_that_is_kept() -> None:
    server = Server(refusal(404, "NotFound"), refusal(409, "AlreadyExists"), secret())
    assert (await found(server)).id == OperatorKeys(RAW).id


@pytest.mark.parametrize("content", [b"", b"short"])
async def test_without_a_usable_key_it_waits_until_somebody_restores_it(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_secret, "PAUSE_SECONDS", 0.0)
    server = Server(secret(content), refusal(403, "Forbidden"), web.json_response({"data": {"key": "?"}}), secret())
    assert (await found(server)).id == OperatorKeys(RAW).id


async def test_what_the_api_server_says_of_the_making_never_shows_the_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(key_secret, "PAUSE_SECONDS", 0.0)
    made: list[str] = []

    class Quoting(Server):
        async def answer(self, request: web.Request) -> web.StreamResponse:
            if request.method == "POST":
                made.append((await request.json())["stringData"]["key"])
                said = {"kind": "Status", "code": 422, "reason": "Invalid", "message": f"not {made[0]}"}
                self.asked.append(request)
                return web.Response(status=422, text=json.dumps(said))
            return await super().answer(request)

    await found(Quoting(refusal(404, "NotFound"), secret()))
    reported = capsys.readouterr().out
    assert "[redacted]" in reported
    assert made[0] not in reported
