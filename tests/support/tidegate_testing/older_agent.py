"""A driver's agent from before requests were signed, and a client that asks it. HTTP on 127.0.0.1."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tidegate.agent import client as agent_client
from tidegate.agent.client import AgentClient
from tidegate_spark.contract.agent_protocol import GREETING_PATH
from tidegate_testing.observations import KEYS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def older_agent(handle: Handler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AgentClient]:
    """Run one, on both of a pod's ports.

    Args:
        handle: answers everything but a greeting, of which it does not know.
        monkeypatch: has the client ask there.
    """

    async def unknown(_: web.Request) -> web.Response:
        return web.Response(status=401)

    app = web.Application()
    app.router.add_get(GREETING_PATH, unknown)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    for port in ("COMMAND_PORT", "STATUS_PORT"):
        monkeypatch.setattr(agent_client, port, runner.addresses[0][1])
    async with AgentClient(KEYS, 4) as client:
        yield client
    await runner.cleanup()
