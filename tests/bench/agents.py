"""Stand-in agents for pods that no kubelet runs: one server that answers, signed, on each pod's loopback address.

kwok gives its pods addresses out of 127.0.0.0/8, so nothing leaves the machine. Each answer reports one more committed
batch than a few seconds before, as a healthy application would.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from email.message import Message
from typing import Any, cast

from aiohttp import web

from tidegate.access.keys import OperatorKeys
from tidegate_spark.contract import protocol
from tidegate_spark.contract.agent_protocol import (
    CHALLENGE_HEADER,
    GREETING_PATH,
    SIGNATURE_HEADER,
    Launch,
    read_header,
)
from tidegate_spark.driver.agent.agent_gate import Gate
from tidegate_spark.process.serving.framing import Head

KEY = "the key of the operator of all benches"
"""Given to it before it starts: stand-ins then need not read the Secrets of launches."""
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

        launch, keys = (
            Launch(pod["metadata"]["namespace"], labels[protocol.LABEL_APP], uid, epoch),
            OperatorKeys(KEY.encode()),
        )
        gate = Gate(launch, keys.number(launch))

        async def greeting(request: web.Request) -> web.Response:
            return web.Response(
                text=protocol.to_json(gate.greet(keys.inspection_token(launch), request.query["nonce"]))
            )

        async def progress(request: web.Request) -> web.Response:
            read = read_header(request.headers.get("Authorization", ""), request.method, request.path_qs)
            refusal = gate.judge(Head(request.method, request.path_qs, cast(Message, request.headers)))
            if read is None or refusal is not None:
                return web.Response(status=401)
            content, challenge = protocol.to_json(_report(launch.app, uid, epoch, started)), gate.challenge()
            signature = gate.answer_signature(read[0], 200, content.encode(), challenge)
            headers = {CHALLENGE_HEADER: challenge, SIGNATURE_HEADER: signature}
            return web.Response(text=content, content_type="application/json", headers=headers)

        app = web.Application()
        app.router.add_get(GREETING_PATH, greeting)
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
