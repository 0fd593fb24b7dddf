"""Serves /metrics, /healthz and /readyz. Does I/O."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from tidegate.wiring.metrics import OperatorMetrics


async def serve_metrics(operator_metrics: OperatorMetrics, port: int, ready: Callable[[], str]) -> web.AppRunner:
    """Start the server and return it; the caller cleans it up.

    Args:
        operator_metrics: what /metrics shows.
        port: on all addresses of the pod, because kubelet and Prometheus come from outside of it.
        ready: returns what is still missing before the operator can work, or an empty string.

    Raises:
        OSError: the port is taken.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(operator_metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        missing = ready()
        return web.Response(text=f"{missing or 'ok'}\n", status=503 if missing else 200)

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, None, port).start()
    return runner
