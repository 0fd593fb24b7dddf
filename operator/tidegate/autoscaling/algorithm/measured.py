"""What an application did between two samples: rows that arrived, its rate, and what it could do. Pure.

The true processing rate is that of DS2 (Kalavri et al., OSDI 2018): rows per second of work. Work is the run time of
tasks, which excludes waits, so the rate is known at any load, also for queries that run batches back to back.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.autoscaling.algorithm.samples import History, QueryCount, Sample

FEWEST_BATCHES = 2
"""Batches in a measurement: of fewer nobody knows what is usual, unless it is as long as the window by itself."""
WARM_UP = 30.0
"""Seconds after a change of the number of executors that are not measured: Python starts, state is loaded."""
BEHIND = 0.9
"""Share of what arrives below which a query that runs one batch after the other falls behind."""
LONG = 20.0
"""Seconds of a batch from which on its fixed part hardly counts."""
WORKED = 0.5
"""Share of their executors' time below which long batches that follow one another are so by their fixed part."""
LATELY = 0.25
"""Share of the window that is lately."""
SHORTEST = 0.5
"""Share of the window that has to be over before the first measurement after a change."""
OVERDUE = 2.0
"""A query may be silent for so many times its usual batch, and the window, before its numbers are too old."""
HUNG = 0.5
"""Share of what the batch before did in a second below which one is taken to have hung."""
FULL = 0.95
"""Share of the time in batches from which on a query runs one after the other."""
UNCOUNTED = 0.1
"""Share of their time in which executors work from which on a query without any rows is one whose source does not
report them. Batches without input, as for timers, take less, or the application has had input before."""
_INSTANT = 1e-3
"""Seconds between two commits, or plans, below which the driver's clock was set back: it is no time to divide by."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen; rates in rows per second."""

    seconds: float
    batches: int
    executors: int
    """That ran all the time."""
    arriving: float
    arriving_lately: float
    """In the last quarter of that time: what is still growing has got there already."""
    processed: float
    rate: float
    """True processing rate of one executor, 0 if it cannot be known."""
    utilization: float
    """Share of the executors' time in which they worked."""
    busy: float
    """Share of the time in which the busiest query was at a batch."""
    saturated: bool
    """It does all it can: one batch after the other, and input waits or piles up."""
    lag_rows: int
    """Rows at the sources beyond the last batches, -1 if no source reports them."""
    backlog: float
    """Rows to be caught up with: that lag, and what arrives while one batch follows the other."""
    throttled: bool = False
    """Input waits, and batches have pauses between them all the same: their size is limited, or their trigger slow."""
    back_to_back: bool = False
    """All queries that read anything run one batch after the other."""
    rows_per_batch: float = 0.0
    """On the average of all batches."""
    shares: tuple[float, ...] = ()
    """Of each query, in the order of their names, in the rows; empty without any."""
    paced: float = 0.0
    """Rows per second in the batches before those that were measured, if one batch followed the other; else 0."""
    batch_seconds: float = 0.0
    """Of the longest of the last batches."""
    tasks_at_once: float = 0.0
    """How many tasks ran at a time while there were batches, on average; 0 if the driver does not report it."""
    idle_executors: int = -1
    source_partitions: int = -1
    """Of all queries, -1 if one does not report it."""
    state_partitions: int = 0
    uncounted: bool = False
    """Executors work, and of a query that has batches the driver has never reported a row."""

    @property
    def capacity(self) -> float:
        """Rows per second if its executors did nothing but work."""
        return self.rate * self.executors

    @property
    def in_batches(self) -> float:
        """Rows per second of the time in batches; 0 if nothing was read."""
        return self.processed / self.busy if self.busy > 0 else 0.0

    @property
    def at_work(self) -> float:
        """Share of the time in batches in which executors worked; 1 if the driver does not report it."""
        return min(1.0, self.utilization / self.busy) if self.busy > 0 else 0.0

    @property
    def packing(self) -> float:
        """The share of its executors' time that batches were able to use while they ran; at most 1.

        The rest goes by in planning and committing, and while all wait for the slowest task.
        """
        if self.saturated and self.capacity > 0:
            # One batch that hung is no property of the program; if it is one, the next batch shows it, too.
            did = self.paced if self.processed < HUNG * self.paced else self.processed
            return min(1.0, did / self.capacity)
        return self.at_work

    @property
    def is_packed(self) -> bool:
        """Whether batches use as much as they can of their executors; short ones would use more if they were longer.

        Of a query that keeps up, and runs one batch after the other, batches are as short as they get. If executors
        rest for most of such a long one it is its fixed part: with more of them it would be as long.
        """
        by_rows = self.busy < FULL or self.utilization >= WORKED
        return self.saturated or (self.batch_seconds >= LONG and by_rows)


def settled_after(window: float) -> float:
    """Return for how many seconds the number of executors has to stay the same before anything is measured."""
    return WARM_UP + window * SHORTEST


def measure(history: History, window: float, cores: int) -> Measured | None:
    """Return what the newest samples show, None if it is too early.

    Args:
        history: the samples.
        window: seconds that are looked at; more if batches are longer.
        cores: tasks that one executor runs at a time.
    """
    warm = [sample for sample in history.samples if sample.at - history.since >= WARM_UP]
    if history.first is None or not warm or not warm[-1].running or not warm[-1].queries:
        return None
    # The batch that was under way when the number of executors changed had some of the one and some of the other.
    over = [
        _over_after(begin, [sample.queries[place] for sample in warm])
        for place, begin in enumerate(history.first.queries)
    ]
    last = warm[-1]
    first = _first_of_window(warm, over, window)
    if first is None or _is_overdue(history, first, last, window):
        return None
    lately = next(
        (
            sample
            for sample in reversed(warm)
            if last.at - sample.at >= window * LATELY and _is_later(sample, last) and _is_after(over, sample)
        ),
        first,
    )
    arriving = sum(span.arriving for span in _spans(lately, last))
    return dataclasses.replace(_between(first, last, cores), arriving_lately=arriving)


def _first_of_window(warm: Sequence[Sample], over: Sequence[int], window: float) -> Sample | None:
    """Return the newest sample that is a window older than the last one, with enough batches between them.

    If none is, it is the oldest one that lies half a window back: whoever waits for input waits twice otherwise. It is
    looked for from the newest on: samples are kept for many windows, and most times it is one of the first.
    """
    last, oldest = warm[-1], None
    for sample in reversed(warm):
        age = last.at - sample.at
        if age < window * SHORTEST or not _is_enough(sample, last, window) or not _is_after(over, sample):
            continue
        if age >= window:
            return sample
        oldest = sample
    return oldest


def _over_after(begin: QueryCount, later: Sequence[QueryCount]) -> int:
    """Return after how many batches of a query the one is over that was under way at the beginning.

    Of a query that had nothing to read since, none was by then: the first batch after a lull is measured, since those
    that follow may be as long as the lag that more executors are to keep small.
    """
    return min([begin.batches + 1, *(query.batches for query in later if query.rested)])


def _is_after(over: Sequence[int], sample: Sample) -> bool:
    """Return whether the last batch of each query was planned after the beginning, or there was nothing to read."""
    return all(query.rested or query.batches > batches for batches, query in zip(over, sample.queries, strict=True))


def _is_later(first: Sample, last: Sample) -> bool:
    """Return whether each query has had a batch between two samples, or nothing to read."""
    return all(b.idle or b.batches > a.batches for a, b in zip(first.queries, last.queries, strict=True))


def _is_enough(first: Sample, last: Sample, window: float) -> bool:
    """Return whether each query has batches between two samples, or nothing to read.

    One is enough if it fills the window: of a query that falls behind, and takes in all that waits, each batch is some
    times as long as the previous one, and waiting for two of them would be too late.
    """
    return all(
        b.idle or b.batches - a.batches >= FEWEST_BATCHES or (b.batches > a.batches and b.batch_seconds >= window)
        for a, b in zip(first.queries, last.queries, strict=True)
    )


def _is_overdue(history: History, first: Sample, last: Sample, window: float) -> bool:
    """Return whether a query has been silent for far longer than its batches take.

    It is at a batch that is larger than any that was measured: what came before says nothing of how much there is to do
    now, least of all that fewer executors would be enough.
    """
    for place, (a, b) in enumerate(zip(first.queries, last.queries, strict=True)):
        since = next(sample.at for sample in history.samples if sample.queries[place].batches == b.batches)
        usual = (b.committed_at - a.committed_at) / max(1, b.batches - a.batches)
        if not b.idle and last.at - since > window + OVERDUE * usual:
            return True
    return False


def _between(first: Sample, last: Sample, cores: int) -> Measured:
    spans = _spans(first, last)
    rows, arriving = sum(span.rows for span in spans), sum(span.arriving for span in spans)
    busiest = max(spans, key=lambda span: span.busy)
    saturated = any(span.saturated for span in spans)
    work = _work(first, last, cores, spans)
    lags = [query.lag_rows for query in last.queries if query.lag_rows >= 0]
    sources = [query.source_partitions for query in last.queries]
    batches = sum(b.batches - a.batches for a, b in zip(first.queries, last.queries, strict=True))
    silent = any(b.rows <= 0 and b.batches > a.batches for a, b in zip(first.queries, last.queries, strict=True))
    return Measured(
        seconds=last.at - first.at,
        batches=batches,
        executors=last.running,
        arriving=arriving,
        arriving_lately=arriving,
        processed=sum(span.processed for span in spans),
        rate=work.rate if math.isfinite(work.rate) else 0.0,
        utilization=work.utilization,
        busy=min(1.0, busiest.busy),
        saturated=saturated,
        lag_rows=sum(lags) if lags else -1,
        backlog=sum(span.backlog for span in spans),
        throttled=any(span.throttled for span in spans) and not saturated,
        back_to_back=rows > 0 and all(span.full for span in spans if span.rows),
        rows_per_batch=rows / batches if batches > 0 else 0.0,
        shares=tuple(span.rows / rows for span in spans) if rows > 0 else (),
        paced=sum(query.pace for query in first.queries) if all(span.full for span in spans if span.rows) else 0.0,
        batch_seconds=max(query.batch_seconds for query in last.queries),
        tasks_at_once=work.at_once,
        idle_executors=last.idle_executors,
        source_partitions=-1 if min(sources) < 0 else sum(sources),
        state_partitions=sum(query.state_partitions for query in last.queries),
        uncounted=silent and rows <= 0 and work.utilization >= UNCOUNTED,
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """What the executors did: rows that one does in a second, share of their time, and tasks that ran at once."""

    rate: float
    utilization: float
    at_once: float


def _work(first: Sample, last: Sample, cores: int, spans: Sequence[_Span]) -> _Work:
    """Return what the executors did, by the time of their tasks or, of a runtime that does not count it, of batches."""
    rows, busiest = sum(span.rows for span in spans), max(spans, key=lambda span: span.busy)
    if first.task_seconds >= 0:
        worked = last.task_seconds - first.task_seconds
        return _Work(
            rate=rows * cores / worked if worked > 0 else 0.0,
            utilization=min(1.0, worked / (last.running * cores * busiest.seconds)),
            at_once=worked / busiest.working if busiest.working > 0 else 0.0,
        )
    # Batches that follow one another are as long as there is work: what more could be done shows in none of them.
    bound = busiest.busy >= FULL and not any(span.saturated for span in spans)
    rate = 0.0 if bound or not busiest.working else rows / (busiest.working * last.running)
    return _Work(rate, utilization=min(1.0, busiest.busy), at_once=0.0)


def _spans(first: Sample, last: Sample) -> list[_Span]:
    return [_Span.of(a, b, last.at - first.at) for a, b in zip(first.queries, last.queries, strict=True)]


@dataclass(frozen=True, slots=True)
class _Span:
    """One query between two of its commits, or until now if there is nothing to read."""

    seconds: float
    rows: int
    working: float
    arriving: float
    backlog: float
    full: bool
    saturated: bool
    throttled: bool

    @property
    def processed(self) -> float:
        return self.rows / self.seconds

    @property
    def busy(self) -> float:
        return self.working / self.seconds

    @classmethod
    def of(cls, a: QueryCount, b: QueryCount, window: float) -> _Span:
        """Return what lies between two counts that are ``window`` seconds apart."""
        # Whole cycles, from commit to commit; what arrived is counted from plan to plan, because a batch takes what is
        # there when it is planned.
        committing = b.committed_at - a.committed_at
        planning = b.planned_at - a.planned_at
        if b.idle or committing < _INSTANT or planning < _INSTANT:
            committing = planning = window
        elif a.rested:
            # Nothing waited at the first sample: what lies between its last batch and that was a lull of any length.
            committing, planning = min(committing, window), min(planning, window)
        rows, working = max(0, b.rows - a.rows), max(0.0, b.busy_seconds - a.busy_seconds)
        lag = max(0, b.lag_rows)
        arriving = max(0.0, rows + lag - max(0, a.lag_rows)) / planning
        full = working / committing >= FULL and not b.idle
        behind = rows / committing < BEHIND * arriving
        # Of a query that has pauses between batches, the next one takes at once what arrived meanwhile.
        backlog = lag + (arriving * b.batch_seconds if full else 0.0)
        waits = lag >= b.batch_rows > 0
        saturated = full and (behind or waits)
        return cls(committing, rows, working, arriving, backlog, full, saturated, waits and not full)
