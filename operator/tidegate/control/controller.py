"""The ControlMessage controller: its watch and its queue. Does I/O."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tidegate.api.control_message import CONTROL_KIND, ControlMessage, decode_message
from tidegate.cache import messages
from tidegate.cache.index import Index
from tidegate.cache.kinds.watch_resources import follow
from tidegate.control.index import ControlIndex, Stored
from tidegate.control.reconcile import NO_APP
from tidegate.engine.controller import Running
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import WorkQueue
from tidegate.kube.client import KubeClient
from tidegate.kube.watch import EventCounter


@dataclass(slots=True)
class ControlController:
    """Brings ControlMessages into the index and wakes the applications' lines of them."""

    client: KubeClient
    metrics: EventCounter
    index: Index
    queue: WorkQueue

    name = "control messages"

    @property
    def complete(self) -> asyncio.Event:
        """Set once all are known that were there at the start."""
        return self.index.of(ControlIndex).complete

    @property
    def missing(self) -> str:
        """What is not known yet, for a person; empty if nothing is."""
        return "" if self.index.of(ControlIndex).complete.is_set() else messages.CONTROL_MESSAGES_UNLISTED

    async def watch(self, namespace: str) -> None:
        """Keep the index's messages up to date, for ever."""
        index = self.index.of(ControlIndex)
        await follow(self.client, self.metrics, CONTROL_KIND, namespace, index, decode_message, self._wake)

    def running(self, concurrency: int) -> list[Running]:
        """Return what the leader runs."""
        # A quarter: a look at a line of messages is short, and most applications have none.
        return [
            (max(1, concurrency // 4), "messages worker", self.queue.run_worker),
            (1, "messages timers", self.queue.run_timers),
        ]

    def wake_for(self, app: Key) -> None:
        """Have the messages to an application reconciled, if there are any, or its driver still reports some."""
        report = self.index.reports.get(app)
        reported = report is not None and bool(report.report.control.messages or report.report.control.asked)
        if reported or self.index.of(ControlIndex).has_messages(app):
            self.queue.wake(app)

    def _wake(self, message: Stored) -> None:
        self.queue.wake(message.app_key if isinstance(message, ControlMessage) else (message.key[0], NO_APP))
