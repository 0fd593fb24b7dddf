"""Holds queries between two batches. Talks to the JVM.

A query's thread takes Spark's progress lock to plan a batch and again to commit it. Holding the lock, and releasing it
for commits only, keeps the query at a boundary. JVM locks belong to threads, so each held query has a thread here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.queries import stopping
from tidegate_spark.queries.entries import Entry

log = logging.getLogger("tidegate")

POLL_SECONDS, SHORT_SECONDS, LOCK_MILLISECONDS = 0.5, 0.02, 100
HELD_SECONDS = 30.0
"""What a query that starts waits to be held before its first batch."""
ANNOUNCED_SECONDS = 2.0


@dataclass
class _Hold:
    query: StreamingQuery
    locked: threading.Event = field(default_factory=threading.Event)
    at_boundary: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class Pauser:
    """Holds all queries, or none. Thread safe."""

    def __init__(self, queries: Callable[[], list[Entry]]) -> None:
        """Look after what ``queries`` returns: those that run."""
        self._queries = queries
        self._lock, self._change = threading.Lock(), threading.Condition()
        self._wanted = self._stopping = False
        self._holds: dict[str, _Hold] = {}
        """By run."""

    def want(self, paused: bool) -> None:
        """Hold queries from now on, or let them go on; returns at once."""
        with self._change:
            if paused == self._wanted:
                return
            self._wanted = paused
            self._change.notify_all()
        log.info("control: queries are %s", "paused" if paused else "resumed", extra={"action": "control"})
        if paused:
            threading.Thread(target=self._hold_all, name="pause", daemon=True).start()

    def hold_first(self, query: StreamingQuery) -> None:
        """Hold a query that starts, if queries are held; called in its own thread, which waits for it."""
        if self._wanted:
            self._hold(query).locked.wait(HELD_SECONDS)

    def held(self) -> list[str] | None:
        """Return the names of the queries that are held, None while one that runs is not, yet."""
        active = self._queries()
        with self._lock:
            holds = dict(self._holds)
        runs = {str(entry.query.runId): entry.name for entry in active if entry.query is not None}
        if any(run not in holds or not holds[run].at_boundary.is_set() for run in runs):
            return None
        return sorted(runs.values())

    def let_stop(self) -> None:
        """Have all queries that are held end, without another batch; returns when they may be stopped."""
        with self._change:
            self._stopping = True
            self._change.notify_all()
        with self._lock:
            holds = list(self._holds.values())
        for hold in holds:
            hold.ended.wait(2 * ANNOUNCED_SECONDS)

    # --- one query ---

    def _hold_all(self) -> None:
        for entry in self._queries():
            if entry.query is not None:
                self._hold(entry.query)

    def _hold(self, query: StreamingQuery) -> _Hold:
        run = str(query.runId)
        with self._lock:
            if run not in self._holds:
                hold = self._holds[run] = _Hold(query)
                threading.Thread(target=self._keep, args=(run, hold), name="pause", daemon=True).start()
            return self._holds[run]

    def _keep(self, run: str, hold: _Hold) -> None:
        try:
            self._hold_until_resumed(hold)
        except (Py4JError, OSError) as error:
            log.warning("control: a query cannot be held: %s", error, extra={"action": "control"})
        finally:
            with self._lock:
                self._holds.pop(run, None)
            hold.ended.set()
            # Nobody is left waiting, whatever became of it.
            hold.locked.set()
        if self._wants() and hold.query.isActive:
            self._hold(hold.query)  # resumed, and paused again meanwhile

    def _hold_until_resumed(self, hold: _Hold) -> None:
        execution: Any = hold.query._jsq.streamingQuery()
        thread, lock = execution.queryExecutionThread(), execution.awaitProgressLock()
        assert SparkContext._jvm is not None
        milliseconds = SparkContext._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        while self._wants() and thread.isAlive() and _is_active(execution):
            if lock.tryLock(LOCK_MILLISECONDS, milliseconds):
                try:
                    hold.locked.set()
                    self._wait(hold, execution, thread, lock)
                finally:
                    lock.unlock()

    def _wait(self, hold: _Hold, execution: Any, thread: Any, lock: Any) -> None:
        """Keep the lock until the thread is to commit a batch, or to go on."""
        while self._wants() and thread.isAlive() and _is_active(execution):
            position = stopping.position_of(thread, lock)
            if position.waits_for_lock and not position.plans:
                return
            if position.begins_batch or position.awaits_trigger or position.polls_for_data:
                hold.at_boundary.set()
            with self._change:
                if self._wants():
                    self._change.wait(POLL_SECONDS if position.begins_batch else SHORT_SECONDS)
        if self._stopping and self._wanted and thread.isAlive():
            self._end(hold.query, execution, thread, lock)

    def _end(self, query: StreamingQuery, execution: Any, thread: Any, lock: Any) -> None:
        """Have a query that is held end as soon as it is released."""
        end = time.monotonic() + ANNOUNCED_SECONDS
        asked = stopping.position_of(thread, lock).ends_if_asked
        if asked and stopping.ask_to_end(execution, thread, lock, lambda: time.monotonic() > end):
            return
        # It is about to plan a batch. Interrupted, it comes to nothing before that batch is written down.
        threading.Thread(target=_stop, args=(query,), name="pause", daemon=True).start()
        waiting = threading.Event()
        for _ in range(int(ANNOUNCED_SECONDS / 0.05)):
            if not _is_active(execution):
                return
            waiting.wait(0.05)

    def _wants(self) -> bool:
        return self._wanted and not self._stopping


def _is_active(execution: Any) -> bool:
    return not str(execution.state().get().getClass().getSimpleName()).startswith("TERMINATED")


def _stop(query: StreamingQuery) -> None:
    try:
        stopping.stop_now(query)
    except (Py4JError, OSError) as error:
        log.warning("control: a query that was held is not stopped: %s", error, extra={"action": "control"})
