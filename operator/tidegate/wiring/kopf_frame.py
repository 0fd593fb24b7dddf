"""kopf's registry and settings: how it logs in, and that it watches and writes nothing. No I/O of its own.

All kinds come by our own watch (:mod:`tidegate.kube.watch`), which shows where a list ends, and what was deleted while
it was interrupted. kopf's finalizers, annotations, events and patches are off.

Design: docs/design/operator-loop.md.
"""

from __future__ import annotations

from typing import Any

import aiohttp
import kopf

from tidegate.kube.connection import Connection
from tidegate.wiring.metrics import OperatorMetrics


def build_registry(connection: Connection, metrics: OperatorMetrics) -> kopf.OperatorRegistry:
    """Return kopf's registry, with our way to log in and nothing that it would watch."""
    registry = kopf.OperatorRegistry()

    def count(request: aiohttp.ClientRequest, status: int) -> None:
        metrics.count_request(request.method, str(status))

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=connection.server, aiohttp_session=connection.session(0, count))

    return registry


def build_settings() -> kopf.OperatorSettings:
    """Return kopf's settings: it writes nothing."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    # Watching CRDs and namespaces would ask for rights in the whole cluster.
    settings.scanning.disabled = True
    return settings
