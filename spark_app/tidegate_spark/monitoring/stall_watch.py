"""Samples the queries' progress for :mod:`tidegate_spark.monitoring.stall`. Talks to the JVM."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from tidegate_spark.contract.protocol import QueryReport
from tidegate_spark.monitoring.continuous import seconds_between_epochs, seconds_of_batch
from tidegate_spark.monitoring.stall import QuerySample, StallDetector
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.queries import Queries

INTERVAL_SECONDS = 5.0
RUNS_BATCH = "Processing new data"
CLEANS_UP = "No new data but cleaning up state"
_AT_BATCH = (RUNS_BATCH, CLEANS_UP)
"""What Spark's StreamExecution calls itself between writing a batch's offsets and committing it."""
WAITS_FOR_TRIGGER = "Waiting for next trigger"

log = logging.getLogger("tidegate")


class StallWatch:
    """Reports to the driver's progress which query is stalled."""

    def __init__(
        self,
        session: SparkSession,
        queries: Queries,
        progress: Progress,
        timeout_seconds: float,
        dependencies_up: Callable[[], bool],
    ) -> None:
        """``dependencies_up`` returns whether storage answers and executors are there."""
        self._tracker = session.sparkContext.statusTracker()
        self._queries, self._progress, self._up = queries, progress, dependencies_up
        self._timeout = timeout_seconds
        self._detector = StallDetector(timeout_seconds)
        self._batches: dict[str, int] = {}
        self._due = 0.0

    def check(self) -> None:
        """Check, if it is time; a stall is reported to the progress, and so to the liveness probe."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (min(INTERVAL_SECONDS, self._timeout / 3) if self._timeout > 0 else INTERVAL_SECONDS)
        reported = self._progress.report()
        known, paused = {query.name: query for query in reported.queries}, reported.control.paused
        stalled = ""
        for entry in self._queries.entries():
            report = known.get(entry.name)
            # The JVM is asked last: of queries that have ended there may be thousands.
            if report is None or not report.active or paused or entry.query is None or not entry.query.isActive:
                self._detector.forget(entry.name)
                if paused and report is not None and report.active:
                    self._progress.observer.waits(entry.name, True)
                continue
            seen = self._see_epochs(report) if report.continuous else self._see(entry, report.batch_id, report.lag_rows)
            pause = seconds_between_epochs(entry.query) if report.continuous else seconds_of_batch(entry.query)
            self._progress.observer.waits(entry.name, seen.waits)
            self._progress.query_at_batch(entry.name, seen.batch_under_way and not report.continuous)
            seconds = self._detector.check(entry.name, seen, now, self._up())
            if self._detector.is_stalled(seconds, pause):
                stalled = _words(report, seconds, seen.batch_under_way)
        if stalled and not self._progress.stalled:
            log.warning("stalled: %s", stalled)
        self._progress.stalled = stalled

    @staticmethod
    def _see_epochs(report: QueryReport) -> QuerySample:
        # An epoch ends with its trigger, without input as well: none long after that is a stall, or there are too few
        # cores.
        return QuerySample(True, -1, False, frozenset(), report.batch_id)

    def _see(self, entry: Entry, last_batch: int, lag_rows: int) -> QuerySample:
        assert entry.query is not None
        status = entry.query._jsq.status()
        message, active = str(status.message()), bool(status.isTriggerActive())
        under_way = active and message in _AT_BATCH
        # Stages are read only if a batch lasts from one sample to the next; most do not.
        lasts = under_way and self._batches.get(entry.name) == last_batch
        self._batches[entry.name] = last_batch
        return QuerySample(
            batch_under_way=under_way,
            lag_rows=lag_rows,
            # A trigger that asks the sources for offsets may wait for a source that is down.
            between_triggers=active or message == WAITS_FOR_TRIGGER,
            tasks_finished=self._tasks(str(entry.query.runId)) if lasts else frozenset(),
            last_batch=last_batch,
            waits=not active and message == WAITS_FOR_TRIGGER,
        )

    def _tasks(self, group: str) -> frozenset[tuple[int, int]]:
        """Return the query's active stages and how many tasks of each have finished; Spark's job group is its run.

        One that failed has finished, too: tasks that wait for a broker that is down fail by themselves, and with the
        last of their attempts the query does, which then shows whose fault it was.
        """
        active = set(self._tracker.getActiveJobsIds())
        jobs = (self._tracker.getJobInfo(job) for job in self._tracker.getJobIdsForGroup(group) if job in active)
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        infos = ((stage, self._tracker.getStageInfo(stage)) for stage in stages)
        return frozenset((stage, info.numCompletedTasks + info.numFailedTasks) for stage, info in infos if info)


def _words(report: QueryReport, seconds: float, under_way: bool) -> str:
    if report.continuous:
        return messages.no_epoch(report.name, report.batch_id, seconds)
    return messages.no_task_finished(report.name, seconds, report.batch_id + 1 if under_way else None)
