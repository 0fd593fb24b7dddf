"""Applications that go while nobody is told of it. A real HTTP server, on 127.0.0.1 in this process."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import WorkQueue
from tidegate.wiring.metrics import OperatorMetrics
from tidegate.wiring.running_operator import Operator
from tidegate_testing.observations import app_with
from tidegate_testing.scripted_server import Server, events, listing, talking_to

APP = app_with(resourceVersion="7")
KEY = ("shop", "orders")


def about(version: int) -> dict[str, Any]:
    metadata = {"namespace": KEY[0], "name": KEY[1], "uid": APP.metadata.uid, "resourceVersion": str(version)}
    return {"kind": "PartialObjectMetadata", "metadata": metadata}


async def checked_after(server: Server, index: Index) -> Key:
    """Return the first application that is looked at because of what the server tells."""
    looked_at: asyncio.Queue[Key] = asyncio.Queue()
    queue = WorkQueue(looked_at.put, OperatorMetrics())
    unused: Any = None
    async with talking_to(server) as client, asyncio.timeout(20):
        operator = Operator(unused, unused, client, OperatorMetrics(), index, queue, unused, asyncio.Event())
        tasks = [asyncio.create_task(operator.watch_ends("")), asyncio.create_task(queue.run_worker())]
        key = await looked_at.get()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return key


TOLD: dict[str, Callable[[], tuple[web.Response, ...]]] = {
    "by the watch": lambda: (listing(8, about(7)), events(("MODIFIED", about(8)), ("DELETED", about(9)))),
    "by nobody, while the watch was not open": lambda: (listing(8, about(7)), web.Response(status=410), listing(50)),
}


@pytest.mark.parametrize("how", TOLD)
async def test_an_application_that_is_gone_is_forgotten_and_looked_at(how: str) -> None:
    index = Index()
    index.put_app(APP)
    assert await checked_after(Server(*TOLD[how]()), index) == KEY
    assert (index.app(KEY), index.put_app(APP)) == (None, set())
