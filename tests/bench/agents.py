"""Stand-in agents for pods that no kubelet runs: one server that answers on each pod's loopback address.

kwok gives its pods addresses out of 127.0.0.0/8, so nothing leaves the machine. Each answer reports one more committed
batch than a few seconds before, as a healthy application would.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web

from tidegate_spark import protocol

BATCH_SECONDS = 5.0


class StandInAgents:
    """Answers GET /v1/progress for many pods, from a thread of its own."""

    def __init__(self) -> None:
        """Serve nothing yet."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runners: list[web.AppRunner] = []

    def __enter__(self) -> "StandInAgents":
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close every socket and end the thread."""
        for runner in self._runners:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    async def answer_for_all(self, pods: AsyncIterator[Mapping[str, Any]]) -> None:
        """Listen on the address of each driver pod as soon as it has one, as an agent does before its pod is ready."""
        served: set[str] = set()
        async for pod in pods:
            name = pod["metadata"]["name"]
            if name not in served and pod["status"].get("podIP") and protocol.LABEL_APP in pod["metadata"]["labels"]:
                served.add(name)
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._serve(pod), self._loop))

    async def _serve(self, pod: Mapping[str, Any]) -> None:
        labels, address = pod["metadata"]["labels"], pod["status"]["podIP"]
        if not address.startswith("127."):
            raise ValueError(f"pod address {address} is not on loopback: a stand-in must not listen anywhere else")
        started = time.time()
        uid = pod["metadata"]["annotations"][protocol.ANNOTATION_APP_UID]
        epoch = int(labels[protocol.LABEL_EPOCH])

        async def progress(_: web.Request) -> web.Response:
            report = _report(labels[protocol.LABEL_APP], uid, epoch, started)
            return web.Response(text=protocol.to_json(report), content_type="application/json")

        app = web.Application()
        app.router.add_get("/v1/progress", progress)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, address, protocol.COMMAND_PORT).start()
        self._runners.append(runner)


def _report(app: str, uid: str, epoch: int, started: float) -> protocol.AgentReport:
    batch = int((time.time() - started) / BATCH_SECONDS)
    query = protocol.QueryReport(
        name="main",
        batch_id=batch,
        input_rows_per_second=100.0,
        processed_rows_per_second=400.0,
        input_rows_total=500 * batch,
        last_commit_time=started + batch * BATCH_SECONDS,
    )
    return protocol.AgentReport(
        app,
        uid,
        epoch,
        protocol.DriverState.RUNNING,
        queries=(query,),
        executors_wanted=1,
        executors_running=1,
        ready=True,
    )
