"""What one report says of an application's speed, and a history of them. Pure.

Reports count from the start of the driver's process, so any two samples of one process give what happened between them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_spark.contract.protocol import AgentReport, QueryReport

KEPT_SECONDS = 1800.0
"""Samples that are older than this say nothing of now, also of an application whose batches are long."""
_MOST = 400
MOST = 10**15
"""More than any figure is: what a program says beyond it is taken for this, and no arithmetic fails at it."""


@dataclass(frozen=True, slots=True)
class QueryCount:
    """One query up to its last committed batch; times are the driver's, in seconds since the epoch."""

    name: str
    batches: int
    rows: int
    busy_seconds: float
    """Duration of all its batches."""
    committed_at: float
    batch_seconds: float
    """Of its last batch, and below how many rows that had."""
    batch_rows: float
    lag_rows: int
    """Rows that its last batch left at the sources, -1 if they do not report them."""
    rested: bool
    """A trigger has found nothing to read since its last batch."""
    source_partitions: int = -1
    """-1: not known."""
    state_partitions: int = 0
    at_batch: bool = False
    """Another batch is under way; False also if the driver does not report it."""

    @property
    def idle(self) -> bool:
        """It has nothing to do: its last trigger found nothing to read, and no batch is known to have begun since."""
        return self.rested and not self.at_batch

    @property
    def planned_at(self) -> float:
        """When its last batch was planned: what arrived later is for the next one."""
        return self.committed_at - self.batch_seconds

    @property
    def pace(self) -> float:
        """Rows per second while it was at its last batch."""
        return self.batch_rows / self.batch_seconds if self.batch_seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One report; ``at`` is when it was taken, in seconds of the operator's monotonic clock.

    That is also which report it is: it was noted once, with the report, and is the same at each look. A time that is
    made of a clock that can be set would be another one each time, and go back when that is set back.
    """

    at: float
    process: str
    wanted: int
    running: int
    task_seconds: float
    """Work of all executors up to the last commit; negative if the driver does not report it."""
    idle_executors: int
    """Those that have had no task for a while, -1 if the driver does not report them."""
    queries: tuple[QueryCount, ...]

    @property
    def setting(self) -> tuple[object, ...]:
        """What has to be the same in two samples for the time between them to be measured as one."""
        return (self.process, self.wanted, self.running, tuple(query.name for query in self.queries))


@dataclass(frozen=True, slots=True)
class History:
    """Samples of one process with one number of executors, oldest first; ``since`` is when that began.

    Times are those of the monotonic clock.
    """

    samples: tuple[Sample, ...] = ()
    since: float = 0.0
    first: Sample | None = None
    """The one that it began with, also when that is too old to be among the samples."""

    def add(self, sample: Sample) -> History:
        """Return the history with one more; it begins again with another process or number of executors, and only then.

        An application is looked at more often than its driver reports, so most reports come here more than once.
        """
        if not self.samples or self.samples[-1].setting != sample.setting:
            return History((sample,), sample.at, sample)
        if sample.at <= self.samples[-1].at:
            return self
        kept = [known for known in self.samples if sample.at - known.at <= KEPT_SECONDS]
        return History((*kept[-_MOST:], sample), self.since, self.first)


def take_sample(report: AgentReport, process: str, at: float) -> Sample:
    """Return what a report says.

    Args:
        report: the newest one.
        process: which driver process gave it; another one counts from nothing.
        at: when it was taken, in seconds of the monotonic clock.
    """
    queries = sorted((query for query in report.queries if query.active), key=lambda query: query.name)
    return Sample(
        at=at,
        process=process,
        wanted=report.executors_wanted,
        running=number_of(report.executors_running),
        task_seconds=_amount_of(report.task_seconds, -1.0),
        idle_executors=number_of(report.executors_idle, -1),
        queries=tuple(_count(query) for query in queries),
    )


def _count(query: QueryReport) -> QueryCount:
    seconds = number_of(query.batch_duration_ms) / 1000
    rested = query.input_rows_per_second == 0.0 and query.processed_rows_per_second == 0.0
    return QueryCount(
        name=query.name,
        batches=number_of(query.committed),
        rows=number_of(query.input_rows_total),
        busy_seconds=number_of(query.busy_ms_total) / 1000,
        committed_at=_amount_of(query.last_commit_time),
        batch_seconds=seconds,
        batch_rows=_amount_of(query.processed_rows_per_second) * seconds,
        lag_rows=number_of(query.lag_rows, -1),
        rested=rested,
        source_partitions=number_of(query.source_partitions, -1),
        state_partitions=number_of(query.state_partitions),
        at_batch=query.at_batch is True,
    )


def number_of(figure: int, least: int = 0) -> int:
    """Return a number that a driver reports as it is, or the nearest one that can be."""
    return max(least, min(figure, MOST))


def _amount_of(figure: float, least: float = 0.0) -> float:
    return max(least, min(figure, float(MOST)))
