"""The autoscaling controller: its queue and workers. Does no I/O."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tidegate.autoscaling.index import AutoscalingIndex
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.engine.controller import Running
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import WorkQueue


def _known_at_once() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(slots=True)
class AutoscalingController:
    """Has resources of no kind of its own; applications wake it, and time."""

    index: Index
    queue: WorkQueue
    complete: asyncio.Event = field(default_factory=_known_at_once)
    """Set from the beginning: there is nothing to be known before it can work."""

    name = "autoscaling"
    missing = ""

    async def watch(self, namespace: str) -> None:
        """Watch nothing."""

    def running(self, concurrency: int) -> list[Running]:
        """Return what the leader runs."""
        # One worker: an evaluation is arithmetic, and quotas are read only when more executors are wanted.
        return [
            (1, "autoscaling worker", self.queue.run_worker),
            (1, "autoscaling timers", self.queue.run_timers),
        ]

    def wake_for(self, app: Key) -> None:
        """Have an application looked at if the autoscaler is on, or was until now."""
        known = self.index.app(app)
        if not isinstance(known, KnownApp):
            return
        spec = known.app.spec.autoscaling
        if (spec is not None and spec.is_on) or self.index.of(AutoscalingIndex).get(known.app) is not None:
            self.queue.wake(app)
