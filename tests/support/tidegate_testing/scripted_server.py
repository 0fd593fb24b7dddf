"""An API server that gives prepared answers in their order. A real HTTP server, on 127.0.0.1 in this process."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from kubernetes.aio.client import Configuration

from tidegate.kube.client import Guard, KubeClient, always
from tidegate.kube.connection import Connection
from tidegate.wiring.metrics import OperatorMetrics


class Server:
    """Gives prepared answers in their order, and notes what was asked."""

    def __init__(self, *answers: web.Response) -> None:
        self.answers = list(answers)
        self.newest = 0
        """The version at which it says that it is; 0 is later than none."""
        self.asked: list[web.Request] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer the next request; when there are no answers left, it is a watch on which nothing happens.

        Questions for the newest version alone are answered beside, and are not noted.
        """
        if request.query.get("limit") == "1" and "PartialObjectMetadataList" in request.headers["Accept"]:
            return listing(self.newest)
        self.asked.append(request)
        if not self.answers:
            await asyncio.sleep(3600)
        return self.answers.pop(0)


class PagedServer(Server):
    """Lists so many objects at a time as it is asked for, and gives prepared answers to everything else."""

    def __init__(self, objects: Sequence[bytes], *answers: web.Response) -> None:
        super().__init__(*answers)
        self.objects = objects

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer the next request."""
        if "watch" in request.query or "PartialObjectMetadataList" in request.headers["Accept"]:
            return await super().answer(request)
        self.asked.append(request)
        begin = int(request.query.get("continue", "0"))
        end = begin + int(request.query["limit"])
        metadata = {"resourceVersion": "9000", "continue": str(end) if end < len(self.objects) else ""}
        body = b'{"metadata":%b,"items":[%b]}' % (json.dumps(metadata).encode(), b",".join(self.objects[begin:end]))
        return web.Response(body=body, content_type="application/json")


@asynccontextmanager
async def talking_to(server: Server, connections: int = 32, guard: Guard = always) -> AsyncIterator[KubeClient]:
    """Serve, with a client that talks to it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    connection = Connection(configuration, ssl.create_default_context())
    try:
        async with KubeClient(connection, OperatorMetrics(), connections, guard) as made:
            yield made
    finally:
        await runner.cleanup()


def listing(version: int, *items: dict[str, Any], more: str = "") -> web.Response:
    """Return one page of a list."""
    return web.json_response({"metadata": {"resourceVersion": str(version), "continue": more}, "items": items})


def events(*pairs: tuple[str, dict[str, Any]]) -> web.Response:
    """Return a watch that tells these events and ends."""
    lines = [json.dumps({"type": kind, "object": about}) for kind, about in pairs]
    return web.Response(text="".join(f"{line}\n" for line in lines))
