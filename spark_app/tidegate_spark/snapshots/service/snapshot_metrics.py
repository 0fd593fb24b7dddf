"""Metrics of snapshots in a driver process. No I/O."""

from __future__ import annotations

import bisect
import itertools
import threading
import time
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.snapshot_protocol import SNAPSHOT_FAILURES, SnapshotReport, SnapshotState

LABELS = ("namespace", "app", "epoch")
DURATIONS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Upper bounds of the histogram, in seconds: from some small files to a terabyte."""


class SnapshotMetrics(Collector):
    """Remembers what orders came to, for the next scrape. Thread safe: the writer is who carries them out."""

    def __init__(self, config: DriverConfig, clock: Callable[[], float] = time.time) -> None:
        """Label everything with the application and epoch of ``config``; ``clock`` returns seconds since the epoch."""
        self._labels, self._clock = (config.namespace, config.app, str(config.epoch)), clock
        self._lock = threading.Lock()
        self._buckets = [0] * (len(DURATIONS) + 1)
        self._seconds = 0.0
        self._copied = self._shared = 0
        self._failures: dict[str, int] = {}
        self._newest: float | None = None

    def copied(self, size: int) -> None:
        """Take note of bytes that were copied."""
        with self._lock:
            self._copied += size

    def ended(self, report: SnapshotReport) -> None:
        """Take note of an order that has ended."""
        with self._lock:
            if report.state is SnapshotState.READY:
                self._buckets[bisect.bisect_left(DURATIONS, report.seconds)] += 1
                self._seconds += report.seconds
                self._shared += report.bytes - report.new_bytes
            elif report.state is SnapshotState.FAILED:
                self._failures[report.reason] = self._failures.get(report.reason, 0) + 1

    def newest(self, created: float | None) -> None:
        """Take note of when the newest snapshot was begun, None if there is none."""
        with self._lock:
            self._newest = created

    def collect(self) -> Iterator[Metric]:
        """Yield each metric family."""
        with self._lock:
            buckets, seconds, newest = list(itertools.accumulate(self._buckets)), self._seconds, self._newest
            copied, shared, failures = self._copied, self._shared, dict(self._failures)
        yield self._durations(buckets, seconds)
        name, help_text = "tidegate_snapshot_copied_bytes", "Copied for snapshots since this driver started."
        yield self._counter(name, help_text, copied)
        name, help_text = "tidegate_snapshot_shared_bytes", "Not copied, because an earlier snapshot had it already."
        yield self._counter(name, help_text, shared)
        age = GaugeMetricFamily(
            "tidegate_snapshot_age_seconds",
            "Time since the newest whole snapshot was begun; those that upgrades keep for themselves do not count.",
            labels=LABELS,
        )
        if newest is not None:
            age.add_metric(self._labels, max(0.0, self._clock() - newest))
        yield age
        help_text = "Snapshots that were given up since this driver started."
        failed = CounterMetricFamily("tidegate_snapshot_failures", help_text, labels=(*LABELS, "reason"))
        # An alert on a rate must see the first of them too, which a counter that starts with 1 would hide.
        for reason in SNAPSHOT_FAILURES:
            failed.add_metric((*self._labels, reason), failures.get(reason, 0))
        yield failed

    def _durations(self, buckets: list[int], seconds: float) -> Metric:
        help_text = "Time from the first attempt at a snapshot to its being complete."
        family = HistogramMetricFamily("tidegate_snapshot_seconds", help_text, labels=LABELS)
        bounds = (*map(str, DURATIONS), "+Inf")
        family.add_metric(self._labels, list(zip(bounds, map(float, buckets), strict=True)), seconds)
        return family

    def _counter(self, name: str, help_text: str, value: int) -> Metric:
        family = CounterMetricFamily(name, help_text, labels=LABELS)
        family.add_metric(self._labels, value)
        return family
