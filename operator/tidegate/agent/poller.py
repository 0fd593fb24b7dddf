"""Polls the agents of all drivers, and wakes an application if the answer matters. Does I/O.

One heap of due times and a few workers serve all drivers. Agents that answered last time come first and the longest
silent ones last; a quarter of the workers polls only agents that answered, so that silent ones cannot hold all workers.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from tidegate.agent.client import AgentClient, Unanswered
from tidegate.cache.access_age import access_is_due
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.process_state import TimedReport
from tidegate.cache.reports import REPORT_AGE
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.pauses import METRICS_INTERVAL
from tidegate.engine.workqueue import WorkQueue
from tidegate.pods.records.names import driver_pod_name
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_spark.contract.snapshot_protocol import SnapshotState

PACES = {"running": (5.0, 30.0, 1.5), "starting": (2.0, 10.0, 1.25), "silent": (2.0, 60.0, 2.0)}
"""First and longest interval in seconds, and the factor from one to the next, as long as the answer is of a kind.

A pod that cannot be reached costs a connection that times out, each time.
"""
BIRTH_SECONDS = 2.0
"""How long after its process began an agent that the kubelet has not found ready is not asked yet.

Python has to start before anybody answers; a connection that is refused costs as much as an answer.
"""
QUICK_INTERVAL = 2.0
"""Seconds between two questions while the agent is at a snapshot, and after its control messages got further."""
AUTOSCALED_INTERVAL = 10.0
"""Longest interval between two questions where the answers decide about the number of executors."""
LEAVING_INTERVAL = 5.0
"""The same while executors end their tasks: who sees none of their pods any more is not to read that they still go."""
SILENT_QUESTIONS = 3
"""So many questions in a row without an answer are no accident: about a quarter of a minute, a moment's load aside."""
_OPEN = frozenset({SnapshotState.WAITING, SnapshotState.COPYING})
log = structlog.get_logger()


class PollCounter(Protocol):
    """Where questions to agents are counted."""

    def count_poll(self, result: str) -> None:
        """Count one question to an agent by result."""


@dataclass(slots=True)
class _Followed:
    driver_uid: str
    restarts: int
    due: float
    pace: str = "starting"
    interval: float = PACES["starting"][0]
    hurried: bool = False
    doubt: float = 1.0
    """0 after an answer, 1 before the first question, and the interval, which grows, after a silence."""
    unborn: bool = False
    """Its process has just begun, and it was not asked yet."""
    unanswered: int = 0
    """Questions in a row that got no answer although the kubelet, which asks the same agent, finds it ready."""


@dataclass(slots=True)
class AgentPoller:
    """Follows drivers and keeps their newest reports in the index, which wakes applications through the queue."""

    _index: Index
    _agents: AgentClient
    _queue: WorkQueue
    _metrics: PollCounter
    workers: int
    """How many run :meth:`run_worker`."""
    _clock: Callable[[], float] = time.monotonic
    """Due times and ages go by it: when somebody sets the time, nobody is asked too often, or not any more."""
    _time: Callable[[], float] = time.time
    """What the time is, in seconds since the epoch."""
    _followed: dict[Key, _Followed] = field(default_factory=dict)
    _heap: list[tuple[float, Key]] = field(default_factory=list)
    """Who is to be asked when."""
    _due: list[tuple[float, float, Key]] = field(default_factory=list)
    """Whose time has come: by doubt, then by time."""
    _doubtful: int = 0
    """How many are being asked of which nobody knows whether they will answer."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def follow(self, key: Key, driver: PodRecord | None) -> None:
        """Ask this driver from now on, or nobody if there is none that could answer."""
        if driver is None or not driver.running or not driver.ip:
            self._followed.pop(key, None)
            self._know_nothing(key)
            return
        known = self._followed.get(key)
        if known is not None and (known.driver_uid, known.restarts) == (driver.uid, driver.restarts):
            if driver.ready and known.unborn:
                known.unborn = False
                self._schedule(key, 0.0)
            return
        self._know_nothing(key)
        unborn = not driver.ready and 0.0 <= self._time() - driver.start_time < BIRTH_SECONDS
        self._followed[key] = _Followed(driver.uid, driver.restarts, 0.0, unborn=unborn)
        self._schedule(key, BIRTH_SECONDS if unborn else 0.0)

    def forget(self, key: Key) -> None:
        """Keep nothing of an application that is gone, however it went."""
        self.follow(key, None)
        self._agents.forget(key)

    def _know_nothing(self, key: Key) -> None:
        self._index.reports.pop(key, None)
        self._index.silences.pop(key, None)

    def hurry(self, key: Key) -> None:
        """Ask soon: something was just changed."""
        followed = self._followed.get(key)
        if followed is None:
            return
        if followed.due == float("inf"):
            followed.hurried = True  # it is being polled now, and the answer may be older than the change
        else:
            self._schedule(key, 1.0)

    async def run_worker(self) -> None:
        """Ask whoever is due, for ever; several workers may run side by side."""
        while True:
            turn = self._next_due()
            if turn is not None:
                await self._ask(*turn)
                continue
            self._changed.clear()
            wait = self._heap[0][0] - self._clock() if self._heap else None
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _next_due(self) -> tuple[Key, _Followed] | None:
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            followed = self._followed.get(key)
            if followed is not None and followed.due == due:
                heapq.heappush(self._due, (followed.doubt, due, key))
        while self._due:
            doubt, due, key = self._due[0]
            followed = self._followed.get(key)
            taken = followed is not None and followed.due == due
            if taken and doubt and self._doubtful >= max(1, self.workers - max(1, self.workers // 4)):
                return None
            heapq.heappop(self._due)
            if followed is not None and taken:
                followed.due = float("inf")  # taken: no other worker asks until there is an answer
                return key, followed
        return None

    def _schedule(self, key: Key, seconds: float) -> None:
        due = self._clock() + seconds
        self._followed[key].due = due
        heapq.heappush(self._heap, (due, key))
        if self._heap[0][1] == key:
            self._changed.set()

    async def _ask(self, key: Key, followed: _Followed) -> None:
        doubtful = followed.doubt > 0
        followed.unborn = False
        self._doubtful += doubtful
        try:
            await self._ask_agent(key, followed)
        except Exception:
            # After any answer; otherwise the application would count as being polled for ever.
            log.exception("an agent's answer could not be taken in", namespace=key[0], app=key[1])
            if self._followed.get(key) is followed:
                self._schedule(key, PACES["silent"][1])
        finally:
            self._doubtful -= doubtful

    async def _ask_agent(self, key: Key, followed: _Followed) -> None:
        driver = next((pod for pod in self._index.pods(key) if pod.name == driver_pod_name(key[1])), None)
        if driver is None or driver.uid != followed.driver_uid:
            del self._followed[key]
            return
        before = self._index.reports.get(key)
        answer = await self._read(key, driver)
        if self._followed.get(key) is not followed:
            return  # another driver took its place meanwhile
        if isinstance(answer, Unanswered):
            self._metrics.count_poll("silent")
            followed.unanswered = followed.unanswered + 1 if driver.ready else 0
            self._note_silence(key, followed, answer)
            pace = "silent"
        else:
            self._metrics.count_poll("answered")
            self._take_in(key, followed, answer)
            pace = "running" if answer.state is DriverState.RUNNING and answer.ready else "starting"
        if pace != followed.pace:
            followed.pace, followed.interval = pace, PACES[pace][0]
        else:
            _, longest, growth = PACES[pace]
            followed.interval = min(followed.interval * growth, longest)
        if isinstance(answer, AgentReport) and _moves(before.report if before is not None else None, answer):
            followed.interval = min(followed.interval, QUICK_INTERVAL)
        if isinstance(answer, AgentReport) and _is_polled(self._index.app(key)):
            followed.interval = min(followed.interval, AUTOSCALED_INTERVAL)
        if isinstance(answer, AgentReport) and answer.executors_leaving:
            followed.interval = min(followed.interval, LEAVING_INTERVAL)
        followed.doubt = followed.interval if pace == "silent" else 0.0
        self._schedule(key, 1.0 if followed.hurried else followed.interval)
        followed.hurried = False

    async def _read(self, key: Key, driver: PodRecord) -> AgentReport | Unanswered:
        try:
            return await self._agents.read_progress(key, driver)
        except Exception as error:
            # One agent's unexpected answer must not end a worker, and the process with it.
            log.exception("agent not asked", namespace=key[0], app=key[1])
            return Unanswered(f"{type(error).__name__}: {error}")

    def _take_in(self, key: Key, followed: _Followed, report: AgentReport) -> None:
        followed.unanswered = 0
        silent = self._index.silences.pop(key, None)
        known = self._index.reports.get(key)
        timed = TimedReport(report, self._clock(), followed.driver_uid, followed.restarts)
        self._index.reports[key] = timed
        batches = batches_to_stable(self._index.app(key))
        news = known is None or silent is not None or _matters(known.report, batches) != _matters(report, batches)
        if news or access_is_due(self._index, key, report, self._clock()):
            self._queue.wake(key)
        elif known is not None and _commits(known.report) != _commits(report):
            since = self._time() - self._index.memory(key).status_written_at
            self._queue.wake_after(key, METRICS_INTERVAL - max(0.0, since))

    def _note_silence(self, key: Key, followed: _Followed, answer: Unanswered) -> None:
        if followed.unanswered >= SILENT_QUESTIONS and key not in self._index.silences:
            self._index.silences[key] = answer.reason
            self._queue.wake(key)
        known = self._index.reports.get(key)
        if known is not None and self._clock() - known.taken_at > REPORT_AGE:
            del self._index.reports[key]  # too old: the kubelet's readiness counts now
            self._queue.wake(key)


def _is_polled(known: KnownApp | UnreadableApp | None) -> bool:
    """Return whether the autoscaler needs an application's numbers."""
    spec = known.app.spec.autoscaling if isinstance(known, KnownApp) else None
    return spec is not None and spec.is_on


def batches_to_stable(known: KnownApp | UnreadableApp | None) -> int:
    """Return after how many batches of each query a version would be stable, 0 if nobody waits for that."""
    if not isinstance(known, KnownApp):
        return 0
    status = known.app.status
    is_stable = status.last_stable is not None and status.last_stable.spec_hash == status.applied_spec_hash
    return 0 if is_stable else known.app.spec.upgrade.stable_batches


def _matters(report: AgentReport, batches: int) -> tuple[object, ...]:
    notices = report.notices[-1].sequence if report.notices else 0
    committed = any(query.batch_id >= 0 for query in report.queries)
    held = (report.executors_ended, report.executors_held_until)
    executors = (report.executors_wanted, report.executors_running, report.executors_leaving, held)
    channel = report.control.channel
    reached = all(query.committed >= batches for query in report.queries)
    return (
        report.epoch,
        report.state,
        report.ready,
        report.fault,
        executors,
        notices,
        committed,
        report.snapshots,
        report.control.messages,
        report.control.paused,
        (channel.connected, channel.reason) if channel is not None else None,
        reached,
    )


def _moves(before: AgentReport | None, report: AgentReport) -> bool:
    # A message may wait for a query's next batch, or for ever: polled often only while messages progress.
    known = before.control.messages if before is not None else ()
    return report.control.messages != known or any(order.state in _OPEN for order in report.snapshots)


def _commits(report: AgentReport) -> tuple[object, ...]:
    channel = report.control.channel
    batches = tuple((query.name, query.batch_id) for query in report.queries)
    return (*batches, channel.received, channel.ended) if channel is not None else batches
