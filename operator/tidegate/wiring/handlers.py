"""kopf's events: a change of an application only puts its newest version into the index and wakes its key.

kopf is set up to watch and to do nothing else: no finalizer, no annotation, no event, no patch is its own. Its storages
for diffs and progress are replaced by empty ones, because filling them deep-copies each body for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import aiohttp
import kopf

from tidegate.api.streaming_app import GROUP, PLURAL, VERSION
from tidegate.cache.index import Index
from tidegate.cache.large_apps import LargeApp
from tidegate.engine.workqueue import WorkQueue
from tidegate.kube.bounded_response import Names, bounded_by
from tidegate.kube.connection import Connection
from tidegate.wiring.metrics import OperatorMetrics

_WATCH_SECONDS = 540
_PAGE = 10
"""Applications that are listed at a time."""


def build_registry(
    connection: Connection, index: Index, queue: WorkQueue, metrics: OperatorMetrics
) -> kopf.OperatorRegistry:
    """Return kopf's registry with our two handlers."""
    registry = kopf.OperatorRegistry()

    def count(request: aiohttp.ClientRequest, status: int) -> None:
        metrics.count_request("WATCH" if "watch" in request.url.query else request.method, str(status))

    def admits(names: Names, size: int) -> bool:
        key = (names.namespace, names.name)
        return index.large.admits(LargeApp(names.uid, key, names.creation_timestamp, size))

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        session = connection.session(0, count, bounded_by(admits))
        return kopf.AiohttpSession(server=connection.server, aiohttp_session=session)

    def is_news(event: kopf.RawEvent, **_: Any) -> bool:
        # kopf asks once for each event; what it does to call a handler is half of what an event costs.
        metrics.count_event(PLURAL)
        return event["type"] == "DELETED" or index.is_news(event["object"]) or index.large.has_changes

    @kopf.on.event(GROUP, VERSION, PLURAL, when=is_news, registry=registry)
    async def take_in(event: kopf.RawEvent, **_: Any) -> None:
        body: Any = event["object"]
        if event["type"] == "DELETED":
            metadata = body["metadata"]
            keys = index.remove_app((metadata["namespace"], metadata["name"]), metadata["uid"])
        else:
            keys = index.put_app(body)
        for key in sorted(keys):  # the same order in every process
            queue.wake(key)

    return registry


def build_settings() -> kopf.OperatorSettings:
    """Return kopf's settings: watch, and write nothing."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    # The CRD is checked at the start; watching CRDs and namespaces would ask for rights in the whole cluster.
    settings.scanning.disabled = True
    # So many of the longest that there can be are decoded at a time.
    settings.watching.chunk_size = _PAGE
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.client_timeout = _WATCH_SECONDS + 30
    settings.watching.inactivity_timeout = 100.0
    settings.queueing.idle_timeout = 0.5
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.persistence.progress_storage = _NoProgress()
    return settings


class _NoDiffs(kopf.DiffBaseStorage):
    """Keeps nothing, builds nothing."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        return None


class _NoProgress(kopf.ProgressStorage):
    """Keeps nothing: handlers that only take in an event have no progress."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence
