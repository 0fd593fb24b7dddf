"""A queue of keys: one worker per key at a time, and any number of wake-ups become one. Uses asyncio.

Level-triggered: a key says that something may have changed, never what. A wake-up during a reconcile causes one more.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from tidegate.engine.resource_key import Key
from tidegate.kube.leadership import NotLeadingError

Work = Callable[[Key], Awaitable[float | None]]
"""Works on one key; returns seconds until the key wants to be looked at again, or None."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 120.0
_FEW = 64
"""Timers that are kept, however few of them are still wanted."""

DONE, REPEAT, ERROR = "done", "repeat", "error"
RESULTS = (DONE, REPEAT, ERROR)
"""How a reconcile ends: as planned; to be repeated for a cause outside of the operator; by a fault of the operator."""


class RetryLaterError(Exception):
    """The work could not be done for a reason outside of it, which the text names; it is tried again with pauses."""


log = structlog.get_logger()


class Depth(Protocol):
    """How many keys wait."""

    def inc(self) -> None:
        """Count one more."""

    def dec(self) -> None:
        """Count one less."""


class QueueMetrics(Protocol):
    """Where the work of queues is measured."""

    @property
    def queue_depth(self) -> Depth:
        """How many keys wait, in all queues."""

    def observe_queue_latency(self, seconds: float) -> None:
        """Record how long a key waited."""

    def count_reconcile(self, result: str, seconds: float) -> None:
        """Count one reconcile by result: one of RESULTS."""


class WorkQueue:
    """Keys that want to be looked at, now or later."""

    def __init__(
        self, work: Work, metrics: QueueMetrics, clock: Callable[[], float] = time.monotonic, subject: str = "app"
    ) -> None:
        """Prepare a queue; :meth:`run_worker` makes it move.

        Args:
            work: called with one key; an exception means: again later, with a pause that doubles up to a cap.
            metrics: depth and latency are shown there.
            clock: seconds, monotonic.
            subject: what a key names, in the log.
        """
        self._subject = subject
        self._work = work
        self._metrics = metrics
        self._clock = clock
        self._waiting: deque[Key] = deque()
        self._since: dict[Key, float] = {}
        self._busy: dict[Key, bool] = {}
        self._failures: dict[Key, int] = {}
        self._due: dict[Key, float] = {}
        self._timers: list[tuple[float, Key]] = []
        self._some = asyncio.Event()
        self._earlier = asyncio.Event()
        self._stopping = False

    def wake(self, key: Key) -> None:
        """Have a key looked at as soon as a worker is free."""
        if key in self._busy:
            self._busy[key] = True
        elif key not in self._since:
            self._since[key] = self._clock()
            self._waiting.append(key)
            self._metrics.queue_depth.inc()
            self._some.set()

    def wake_after(self, key: Key, seconds: float) -> None:
        """Have a key looked at in some seconds; an earlier time that is already set stays."""
        due = self._clock() + max(0.0, seconds)
        if self._due.get(key, float("inf")) <= due:
            return
        self._due[key] = due
        if len(self._timers) > _FEW + 2 * len(self._due):
            # Most were replaced. Each look at a key that waits for days replaces one, and it would stay for days.
            self._timers = [(at, waiting) for waiting, at in self._due.items()]
            heapq.heapify(self._timers)
        else:
            heapq.heappush(self._timers, (due, key))
        if self._timers[0][0] == due:
            self._earlier.set()

    def begin(self) -> None:
        """Let waiting count from now: until now there was nobody to work."""
        self._since = dict.fromkeys(self._since, self._clock())

    def stop(self) -> None:
        """Have the workers end after what they are doing now."""
        self._stopping = True
        self._some.set()

    async def run_timers(self) -> None:
        """Wake keys whose time has come; never ends by itself."""
        while True:
            self._earlier.clear()
            now = self._clock()
            while self._timers and self._timers[0][0] <= now:
                due, key = heapq.heappop(self._timers)
                if self._due.get(key) == due:  # otherwise an earlier time replaced it
                    del self._due[key]
                    self.wake(key)
            try:
                async with asyncio.timeout(self._timers[0][0] - now if self._timers else None):
                    await self._earlier.wait()
            except TimeoutError:
                continue

    async def run_worker(self) -> None:
        """Work on keys until :meth:`stop`.

        Raises:
            NotLeadingError: the work says so; this process must not work on anything any more.
        """
        while not self._stopping:
            if not self._waiting:
                self._some.clear()
                await self._some.wait()
                continue
            key = self._waiting.popleft()
            self._metrics.queue_depth.dec()
            self._metrics.observe_queue_latency(self._clock() - self._since.pop(key))
            self._busy[key] = False
            self._due.pop(key, None)
            try:
                again = await self._run_once(key)
            finally:
                woken = self._busy.pop(key)
            if woken:
                self.wake(key)
            if again is not None:
                self.wake_after(key, again)

    async def _run_once(self, key: Key) -> float | None:
        started = self._clock()
        # Each line that this worker logs during the reconcile names the application.
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(namespace=key[0], **{self._subject: key[1]})
        try:
            again = await self._work(key)
        except NotLeadingError:
            raise
        except RetryLaterError as error:
            pause = self._pause(key)
            log.warning("tried again later", again_after=pause, why=str(error))
            self._metrics.count_reconcile(REPEAT, self._clock() - started)
            return pause
        except Exception:
            # One resource must not end the operator; its back-off keeps it from using up a core.
            pause = self._pause(key)
            log.exception("reconcile failed", again_after=pause)
            self._metrics.count_reconcile(ERROR, self._clock() - started)
            return pause
        self._failures.pop(key, None)
        self._metrics.count_reconcile(DONE, self._clock() - started)
        return again

    def _pause(self, key: Key) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return min(FIRST_PAUSE * 2.0 ** min(failures - 1, 16), LONGEST_PAUSE)
