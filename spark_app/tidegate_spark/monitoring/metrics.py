"""The driver's Prometheus metrics, computed at each scrape from :class:`Progress`. No I/O."""

from __future__ import annotations

import bisect
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate_spark.contract.protocol import DriverConfig, QueryReport
from tidegate_spark.process.progress import Commit, Observer, Progress

LABELS = ("namespace", "app", "query", "epoch")
DURATIONS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Upper bounds of the histogram of batches, in seconds: from a quick trigger to a catch-up after a day's rest."""


@dataclass(frozen=True)
class Gauge:
    """One figure of a query; ``read`` returns None where there is nothing to show."""

    name: str
    help: str
    read: Callable[[QueryReport], float | None]


GAUGES = (
    Gauge("tidegate_query_active", "1 while the query runs.", lambda q: float(q.active)),
    Gauge("tidegate_query_batch_id", "Last committed batch; -1 before the first.", lambda q: q.batch_id),
    Gauge(
        "tidegate_query_input_rows_per_second", "Rows arriving, in the last batch.", lambda q: q.input_rows_per_second
    ),
    Gauge(
        "tidegate_query_processed_rows_per_second",
        "Rows processed, in the last batch.",
        lambda q: q.processed_rows_per_second,
    ),
    Gauge(
        "tidegate_query_source_lag_rows",
        "Rows that a running query's last batch left behind in the sources that count rows (Kafka).",
        lambda q: q.lag_rows if q.active and q.lag_rows >= 0 else None,
    ),
    Gauge("tidegate_query_state_rows", "Rows in state.", lambda q: q.state_rows),
    Gauge("tidegate_query_state_bytes", "Size of state.", lambda q: q.state_bytes),
)


class Batches(Observer):
    """What is remembered of each query beside its newest figures: how long its batches took, whether it has input.

    Thread safe; the writers are Spark's listener and the script, the reader is a scrape.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Start with nothing; ``clock`` returns seconds since the epoch."""
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._idle: set[str] = set()
        self._waiting: set[str] = set()
        self._busy_since: dict[str, float] = {}

    def started(self, query: str) -> None:
        """Take note that a query runs."""
        with self._lock:
            self._started[query] = self._clock()
            self._idle.discard(query)
            self._waiting.discard(query)

    def committed(self, query: str, commit: Commit) -> None:
        """Take note of a finished batch."""
        seconds = commit.batch_duration_ms / 1000
        with self._lock:
            buckets = self._buckets.setdefault(query, [0] * (len(DURATIONS) + 1))
            buckets[bisect.bisect_left(DURATIONS, seconds)] += 1
            self._seconds[query] = self._seconds.get(query, 0.0) + seconds
            self._idle.discard(query)

    def idle(self, query: str) -> None:
        """Take note of a trigger that found nothing to read."""
        with self._lock:
            self._idle.add(query)

    def at_batch(self, query: str) -> None:
        """Note a batch that has begun: Spark reports it only when it ends, which may be in an hour."""
        with self._lock:
            if query in self._idle:
                self._idle.discard(query)
                self._busy_since[query] = self._clock()

    def waits(self, query: str, waits: bool) -> None:
        """Take note whether a query waits for the time of its trigger, or is paused: it may do so for hours."""
        with self._lock:
            if waits:
                self._waiting.add(query)
            elif query in self._waiting:
                self._waiting.discard(query)
                self._busy_since[query] = self._clock()

    def durations(self, query: str) -> tuple[list[tuple[str, float]], float]:
        """Return the cumulative buckets, by upper bound, and the sum of all durations."""
        with self._lock:
            counts = itertools.accumulate(self._buckets.get(query, [0] * (len(DURATIONS) + 1)))
            bounds = (*map(str, DURATIONS), "+Inf")
            return list(zip(bounds, map(float, counts), strict=True)), self._seconds.get(query, 0.0)

    def is_idle(self, query: str) -> bool:
        """Return whether the query's last trigger found nothing to read, or it waits for the next, or is paused."""
        with self._lock:
            return query in self._idle or query in self._waiting

    def commit_age(self, query: QueryReport) -> float:
        """Return the seconds since the query's last commit or start, or since it was idle, whichever came later."""
        with self._lock:
            began = max(self._started.get(query.name, 0.0), self._busy_since.get(query.name, 0.0))
        since = max(query.last_commit_time, began)
        return max(0.0, self._clock() - since)


class QueryCollector(Collector):
    """Reads the report when Prometheus asks, so that nothing can be stale or left over."""

    def __init__(self, config: DriverConfig, progress: Progress, batches: Batches) -> None:
        """Label everything with the application and epoch of ``config``."""
        self._progress, self._batches = progress, batches
        self._app, self._epoch = (config.namespace, config.app), str(config.epoch)

    def collect(self) -> Iterator[Metric]:
        """Yield each metric family."""
        report = self._progress.report()
        for gauge in GAUGES:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=LABELS)
            for query in report.queries:
                value = gauge.read(query)
                if value is not None:
                    family.add_metric(self._labels(query), value)
            yield family
        running = [query for query in report.queries if query.active]
        yield self._idle(running)
        yield self._commit_ages(running)
        yield self._durations(report.queries)
        rows = CounterMetricFamily("tidegate_query_input_rows", "Rows read since this driver started.", labels=LABELS)
        for query in report.queries:
            rows.add_metric(self._labels(query), query.input_rows_total)
        yield rows
        executors = (
            ("wanted", report.executors_wanted, "Executors wanted."),
            ("running", report.executors_running, "Executors running."),
            (
                "leaving",
                report.executors_leaving,
                "Executors that go when their tasks have ended; not among the running.",
            ),
        )
        for word, number, help_text in executors:
            name = f"tidegate_driver_executors_{word}"
            family = GaugeMetricFamily(name, help_text, labels=("namespace", "app", "epoch"))
            family.add_metric((*self._app, self._epoch), number)
            yield family

    def _labels(self, query: QueryReport) -> tuple[str, ...]:
        return (*self._app, query.name, self._epoch)

    def _idle(self, running: list[QueryReport]) -> Metric:
        help_text = "1 while a running query finds nothing to read, waits for its trigger's time, or is paused."
        family = GaugeMetricFamily("tidegate_query_idle", help_text, labels=LABELS)
        for query in running:
            family.add_metric(self._labels(query), float(self._batches.is_idle(query.name)))
        return family

    def _commit_ages(self, running: list[QueryReport]) -> Metric:
        help_text = "Time since a running query's last commit, start or end of being idle, whichever came last."
        family = GaugeMetricFamily("tidegate_query_last_commit_age_seconds", help_text, labels=LABELS)
        for query in running:
            family.add_metric(self._labels(query), self._batches.commit_age(query))
        return family

    def _durations(self, queries: tuple[QueryReport, ...]) -> Metric:
        name = "tidegate_query_batch_duration_seconds"
        family = HistogramMetricFamily(name, "Duration of batches, from trigger to commit.", labels=LABELS)
        for query in queries:
            buckets, total = self._batches.durations(query.name)
            family.add_metric(self._labels(query), buckets, total)
        return family


def build_registry(
    config: DriverConfig, progress: Progress, clock: Callable[[], float] = time.time
) -> CollectorRegistry:
    """Return a registry of its own: an application that uses prometheus_client keeps its default one to itself."""
    registry = CollectorRegistry()
    batches = Batches(clock)
    progress.observer = batches
    registry.register(QueryCollector(config, progress, batches))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry
