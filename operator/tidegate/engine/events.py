"""Publishes Kubernetes Events: each once, within a rate limit. Does I/O."""

from __future__ import annotations

import asyncio
import datetime
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog

from tidegate.api.control_message import CONTROL_KIND
from tidegate.api.stream_snapshot import SNAPSHOT_KIND
from tidegate.api.streaming_app import KIND, Metadata
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.event import build_event
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists
from tidegate.kube.paths import collection_of

BURST, REFILL_SECONDS = 50.0, 60.0
"""A resource may have this many events at once, and one more for each such number of seconds.

An upgrade has about eight events: whoever tries one version after another must see each of them."""
_REMEMBERED = 4096
_KEYS = {KIND: "app", SNAPSHOT_KIND: "snapshot", CONTROL_KIND: "control_message"}
"""In the log, what names an object of a kind."""
WAITING = 1024
"""Events that wait to be published; whoever has more publishes them at once."""
T = TypeVar("T")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Waiting:
    about: Metadata
    event: PublishEvent
    now: float
    kind: str


class EventPublisher:
    """Publishes events; what is lost is lost, because nothing depends on them."""

    def __init__(self, client: KubeClient) -> None:
        """Start with nothing published."""
        self._client = client
        self._published: OrderedDict[str, None] = OrderedDict()
        self._budget: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._waiting: deque[_Waiting] = deque()
        self._some = asyncio.Event()
        self._runs = False

    def stop(self) -> None:
        """Let nothing wait any more; :meth:`run_worker` ends when what waits already is published."""
        self._runs = False
        self._some.set()

    async def run_worker(self) -> None:
        """Publish what waits, until :meth:`stop`: one at a time, so that it takes little from what is under way.

        Raises:
            NotLeadingError: this process must not publish anything any more.
        """
        self._runs = True
        try:
            while self._runs or self._waiting:
                while self._waiting:
                    one = self._waiting.popleft()
                    structlog.contextvars.bind_contextvars(namespace=one.about.namespace, app=one.about.name)
                    await self.publish(one.about, one.event, one.now, one.kind)
                self._some.clear()
                if self._runs:
                    await self._some.wait()
        finally:
            self._runs = False

    async def publish_later(self, about: Metadata, event: PublishEvent, now: float, kind: str = KIND) -> None:
        """Have an event published that nobody waits for, and that may be lost with the process."""
        if not self._runs or len(self._waiting) >= WAITING:
            await self.publish(about, event, now, kind)
            return
        self._waiting.append(_Waiting(about, event, now, kind))
        self._some.set()

    async def publish(self, about: Metadata, event: PublishEvent, now: float, kind: str = KIND) -> None:
        """Publish an event about a resource of this kind, unless it was published before or the budget is used up."""
        manifest = build_event(
            about,
            reason=event.reason,
            message=event.message,
            now=datetime.datetime.fromtimestamp(now, datetime.UTC),
            warning=event.warning,
            key=event.occasion,
            kind=kind,
            any_message=event.any_message,
        )
        name = manifest["metadata"]["name"]
        if name in self._published:
            return
        of_whom = {"namespace": about.namespace, _KEYS[kind]: about.name}
        if not self._spend(about.uid, now):
            log.warning("event withheld", reason=event.reason, why="too many of this resource", **of_whom)
            return
        answer = await self._client.create(collection_of(manifest), manifest, msgspec.Raw)
        if isinstance(answer, FAILURES) and not isinstance(answer, AlreadyExists):
            # Only the log has it then: a namespace that is being deleted accepts no events.
            log.warning("event lost", reason=event.reason, message=event.message, error=str(answer), **of_whom)
            return
        _remember(self._published, name, None)

    def _spend(self, uid: str, now: float) -> bool:
        left, since = self._budget.get(uid, (BURST, now))
        left = min(BURST, left + max(0.0, now - since) / REFILL_SECONDS)
        _remember(self._budget, uid, (max(left - 1, 0.0) if left >= 1 else left, now))
        return left >= 1


def _remember(memory: OrderedDict[str, T], name: str, value: T) -> None:
    memory[name] = value
    memory.move_to_end(name)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)
