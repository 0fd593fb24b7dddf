"""Remembers which series of counters and histograms an application has, because they end with it. No I/O."""

from __future__ import annotations

from typing import TypeVar

from prometheus_client import Counter, Histogram

from tidegate.engine.resource_key import Key

Metric = TypeVar("Metric", Counter, Histogram)


class AppSeries:
    """Series whose first labels are an application's namespace and name."""

    def __init__(self) -> None:
        """Start with none."""
        self._series: dict[Key, set[tuple[Counter | Histogram, tuple[str, ...]]]] = {}

    def of(self, metric: Metric, app: Key, *labels: str) -> Metric:
        """Return an application's series of a metric, to be counted in; ``labels`` come after the application's own."""
        self._series.setdefault(app, set()).add((metric, labels))
        return metric.labels(*app, *labels)

    def remove(self, app: Key) -> None:
        """Remove every series of an application."""
        for metric, labels in self._series.pop(app, ()):
            metric.remove(*app, *labels)
