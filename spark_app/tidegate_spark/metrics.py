"""The driver's Prometheus metrics, computed at each scrape from :class:`tidegate_spark.progress.Progress`. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate_spark.progress import Progress
from tidegate_spark.protocol import DriverConfig, QueryReport

LABELS = ("namespace", "app", "query", "epoch")


@dataclass(frozen=True)
class Gauge:
    """One figure of a query."""

    name: str
    help: str
    read: Callable[[QueryReport], float]


GAUGES = (
    Gauge("tidegate_query_active", "1 while the query runs.", lambda q: float(q.active)),
    Gauge("tidegate_query_batch_id", "Last committed batch.", lambda q: q.batch_id),
    Gauge("tidegate_query_input_rows_per_second", "Rows arriving.", lambda q: q.input_rows_per_second),
    Gauge("tidegate_query_processed_rows_per_second", "Rows processed.", lambda q: q.processed_rows_per_second),
    Gauge("tidegate_query_batch_duration_seconds", "Duration of the last batch.", lambda q: q.batch_duration_ms / 1000),
    Gauge("tidegate_query_state_rows", "Rows in state.", lambda q: q.state_rows),
    Gauge("tidegate_query_state_bytes", "Size of state.", lambda q: q.state_bytes),
    Gauge("tidegate_query_last_commit_timestamp_seconds", "Time of the last commit.", lambda q: q.last_commit_time),
)


class QueryCollector(Collector):
    """Reads the report when Prometheus asks, so that nothing can be stale or left over."""

    def __init__(self, config: DriverConfig, progress: Progress) -> None:
        """Label everything with the application and epoch of ``config``."""
        self._config, self._progress = config, progress

    def collect(self) -> Iterator[Metric]:
        """Yield each metric family."""
        report = self._progress.report()
        epoch = str(self._config.epoch)
        app_labels = (self._config.namespace, self._config.app)
        for gauge in GAUGES:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=LABELS)
            for query in report.queries:
                family.add_metric((*app_labels, query.name, epoch), gauge.read(query))
            yield family
        rows = CounterMetricFamily("tidegate_query_input_rows", "Rows read since this driver started.", labels=LABELS)
        for query in report.queries:
            rows.add_metric((*app_labels, query.name, epoch), query.input_rows_total)
        yield rows
        executors = (("wanted", report.executors_wanted), ("running", report.executors_running))
        for word, number in executors:
            name = f"tidegate_driver_executors_{word}"
            family = GaugeMetricFamily(name, f"Executors {word}.", labels=("namespace", "app", "epoch"))
            family.add_metric((*app_labels, epoch), number)
            yield family


def build_registry(config: DriverConfig, progress: Progress) -> CollectorRegistry:
    """Return a registry of its own: an application that uses prometheus_client keeps its default one to itself."""
    registry = CollectorRegistry()
    registry.register(QueryCollector(config, progress))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry
