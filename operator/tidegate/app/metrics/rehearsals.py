"""Metrics about rehearsals: results and durations. No I/O."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from tidegate.api.status.status import StreamingAppStatus
from tidegate.app.metrics.durations import seconds_between
from tidegate.engine.app_series import AppSeries

App = tuple[str, str]
"""Namespace and name of an application."""
_SECONDS = (10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600, 7200)


class RehearsalMetrics:
    """Outcomes and durations of rehearsals since the operator began."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._ended = Counter(
            "tidegate_app_rehearsals",
            "Rehearsals of new versions that came to an end, by outcome: Passed, Failed or Inconclusive.",
            ("namespace", "app", "outcome"),
            registry=registry,
        )
        self._seconds = Histogram(
            "tidegate_rehearsal_duration_seconds",
            "From the decision to rehearse to the outcome, over all applications; those that could not begin left out.",
            ("outcome",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._series = AppSeries()

    def show(self, app: App, before: StreamingAppStatus, after: StreamingAppStatus) -> None:
        """Count a rehearsal that has just ended.

        Args:
            app: namespace and name.
            before: its status as it was before an operator's write.
            after: as it is now.
        """
        new = after.upgrade.rehearsal if after.upgrade is not None else None
        old = before.upgrade.rehearsal if before.upgrade is not None else None
        if new is None or not new.result or new == old:
            return
        self._series.of(self._ended, app, new.result).inc()
        if new.start_time is not None and new.completion_time is not None:
            self._seconds.labels(new.result).observe(seconds_between(new.start_time, new.completion_time))

    def forget(self, app: App) -> None:
        """Remove every series of an application that is gone."""
        self._series.remove(app)
