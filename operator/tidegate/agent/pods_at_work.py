"""Polls helper pods for their progress while they run, and wakes the keys that they work for. Does I/O.

Nothing is decided by the answers: the result of a helper pod is its termination message.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from tidegate.agent.client import AgentClient, Unanswered
from tidegate.cache.index import Index
from tidegate.cache.process_state import PodProgress
from tidegate.engine.resource_key import Key
from tidegate.pods.records.record import PodRecord, process_of

log = structlog.get_logger()
INTERVAL = 5.0
"""Seconds between two questions."""


@dataclass(slots=True)
class PodsAtWork(ABC):
    """The pods at work, by the key that each works for; each kind keeps its pods' reports in a place of its own."""

    _index: Index
    _agents: AgentClient
    _wake: Callable[[Key], None]
    _followed: dict[Key, PodRecord] = field(default_factory=dict)
    _some: asyncio.Event = field(default_factory=asyncio.Event)

    def follow(self, key: Key, pod: PodRecord | None) -> None:
        """Ask this pod from now on, or none if there is none that could answer."""
        if pod is None or not pod.running or not pod.ip or pod.terminating:
            self._followed.pop(key, None)
            return
        self._followed[key] = pod
        self._some.set()

    async def run(self) -> None:
        """Ask all of them every few seconds, for ever."""
        while True:
            if not self._followed:
                self._some.clear()
                await self._some.wait()
            await asyncio.sleep(INTERVAL)
            await self.ask()

    async def ask(self) -> None:
        """Ask all of them once."""
        await asyncio.gather(*(self._ask(key, pod) for key, pod in list(self._followed.items())))

    async def _ask(self, key: Key, pod: PodRecord) -> None:
        try:
            answer = await self._agents.read_snapshot_pod(pod)
        except Exception:
            # One pod's unexpected answer must not end the task, and the process with it.
            log.exception("pod not asked", namespace=key[0], pod=pod.name)
            return
        if isinstance(answer, Unanswered) or not answer.snapshots or self._followed.get(key) is not pod:
            return
        if self._keep(key, PodProgress(process_of(pod), answer.snapshots[0])):
            self._wake(key)

    @abstractmethod
    def _keep(self, key: Key, progress: PodProgress) -> bool:
        """Keep what a pod reports, for the decisions about its key; return whether that is news."""
