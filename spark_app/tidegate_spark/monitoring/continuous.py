"""Counts the epochs of continuous triggers as batches, and reports batches of a fixed length. Talks to the JVM.

Spark reports no progress of such queries: ``ProgressContext.finishTrigger`` makes the report, and
``ContinuousExecution`` never calls it. Its ``commit`` enters each epoch in the commit log, whose newest entries are in
memory and read here.

What is missing is reported when the query starts: rows, rates and lag; a stop or pause between epochs
(``getStartOffsets`` resumes at the last committed one); a retried task (``ContinuousDataSourceRDD`` raises
ContinuousTaskRetryException).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.progress import Commit, Progress
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.stopping import RESERVED_SECONDS, is_real_time

CLASS = "ContinuousExecution"
MOST_AT_ONCE = 1000
"""So many epochs of a query are counted one by one at a look; of more, only the last ones."""


@dataclass
class _Run:
    """One run of a query, and the last epoch that was counted, when."""

    epoch: int
    time: float


def is_continuous(query: StreamingQuery) -> bool:
    """Return whether a query has a continuous trigger."""
    return str(query._jsq.streamingQuery().getClass().getName()).endswith(CLASS)


def newest_epoch(query: StreamingQuery) -> int:
    """Return the newest epoch that a query's run has committed, -1 if there is none."""
    log: Any = query._jsq.streamingQuery().commitLog()
    found = [int(epoch) for epoch in log.batchCache().keySet().toArray()]
    if found:
        return max(found)
    # Spark remembers none if it is configured so (spark.sql.streaming.metadataCache.enabled).
    latest = log.getLatestBatchId()
    return int(latest.get()) if latest.isDefined() else -1


def seconds_between_epochs(query: StreamingQuery) -> float:
    """Return after how many seconds the trigger of a continuous query ends an epoch."""
    trigger: Any = query._jsq.streamingQuery().trigger()
    return int(trigger.intervalMs()) / 1000


def seconds_of_batch(query: StreamingQuery) -> float:
    """Return for how long a query's trigger has each batch last: in real-time mode all its tasks read until then."""
    execution: Any = query._jsq.streamingQuery()
    return int(execution.trigger().batchDurationMs()) / 1000 if is_real_time(execution) else 0.0


class Epochs:
    """Counts the epochs of one driver's queries."""

    def __init__(  # noqa: PLR0913 - all but two are by name
        self,
        progress: Progress,
        stop_seconds: float,
        *,
        is_continuous: Callable[[StreamingQuery], bool] = is_continuous,
        newest: Callable[[StreamingQuery], int] = newest_epoch,
        batch_seconds: Callable[[StreamingQuery], float] = seconds_of_batch,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Report to ``progress``; the others ask Spark, and the time. A stop waits ``stop_seconds`` for a batch."""
        self._progress, self._is_continuous, self._newest, self._clock = progress, is_continuous, newest, clock
        self._stop_seconds, self._batch_seconds = stop_seconds, batch_seconds
        self._runs: dict[str, _Run | None] = {}
        """By run; None: its trigger is another one."""

    def check(self, active: list[Entry]) -> None:
        """Count what the queries that run have committed since the last look."""
        runs = {str(entry.query.runId): entry for entry in active if entry.query is not None}
        self._runs = {run: known for run, known in self._runs.items() if run in runs}
        for run, entry in runs.items():
            assert entry.query is not None
            if run not in self._runs:
                self._runs[run] = self._meet(entry.name, entry.query)
            known = self._runs[run]
            if known is not None:
                self._count(entry.name, known, self._newest(entry.query))

    def _meet(self, name: str, query: StreamingQuery) -> _Run | None:
        if not self._is_continuous(query):
            self._report_real_time(name, self._batch_seconds(query))
            return None
        self._progress.query_triggers(name, continuous=True)
        self._progress.notice(Reason.CONTINUOUS_TRIGGER, messages.continuous(name), warning=True)
        return _Run(self._progress.committed.get(name, -1), self._clock())

    def _report_real_time(self, name: str, seconds: float) -> None:
        if seconds > 0:
            self._progress.query_triggers(name, real_time=True)
            message = messages.real_time(name, seconds, seconds + RESERVED_SECONDS)
            self._progress.notice(Reason.REAL_TIME_TRIGGER, message, warning=seconds >= self._stop_seconds)

    def _count(self, name: str, known: _Run, newest: int) -> None:
        new = range(max(known.epoch + 1, newest + 1 - MOST_AT_ONCE), newest + 1)
        if not new:
            return
        now = self._clock()
        each = max(0.0, now - known.time) / len(new)
        for epoch in new:
            at = now - (newest - epoch) * each
            self._progress.query_committed(name, Commit(epoch, 0, 0.0, 0.0, round(1000 * each), 0, 0, at))
        known.epoch, known.time = newest, now
