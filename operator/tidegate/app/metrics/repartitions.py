"""Metrics about repartitions: results and durations. No I/O."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from tidegate.api.status.repartition_status import RepartitionStatus
from tidegate.api.status.status import StreamingAppStatus, UpgradePhase
from tidegate.app.metrics.durations import seconds_between
from tidegate.engine.app_series import AppSeries

App = tuple[str, str]
"""Namespace and name of an application."""
_SECONDS = (10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600, 7200)


class RepartitionMetrics:
    """Outcomes and durations of repartitions since the operator began."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._ended = Counter(
            "tidegate_app_repartitions",
            "Ended changes of the number of state partitions, by outcome: Completed, NotNeeded, Refused or Failed.",
            ("namespace", "app", "outcome"),
            registry=registry,
        )
        self._attempts = Counter(
            "tidegate_app_repartition_attempts",
            "Attempts to repartition state, of one pod each; more than one for each repartition means that pods were "
            "lost, or found the storage away.",
            ("namespace", "app"),
            registry=registry,
        )
        self._seconds = Histogram(
            "tidegate_repartition_duration_seconds",
            "For how long the application stood still while its state was repartitioned, over all applications: from "
            "its stop to the outcome.",
            ("outcome",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._series = AppSeries()

    def show(self, app: App, before: StreamingAppStatus, after: StreamingAppStatus) -> None:
        """Count attempts that have just begun, and a repartition that has just ended.

        Args:
            app: namespace and name.
            before: its status as it was before an operator's write.
            after: as it is now.
        """
        old, new = _of(before), _of(after)
        if new is None:
            return
        if new.epoch and (old is None or old.epoch != new.epoch):
            self._series.of(self._attempts, app).inc()
        outcome = _outcome(after)
        if not outcome or (outcome, _number(after)) == (_outcome(before), _number(before)):
            return
        self._series.of(self._ended, app, outcome).inc()
        if new.start_time is not None and new.completion_time is not None:
            self._seconds.labels(outcome).observe(seconds_between(new.start_time, new.completion_time))

    def forget(self, app: App) -> None:
        """Remove every series of an application that is gone."""
        self._series.remove(app)


def _of(status: StreamingAppStatus) -> RepartitionStatus | None:
    return status.upgrade.repartition if status.upgrade is not None else None


def _number(status: StreamingAppStatus) -> int:
    return status.upgrade.number if status.upgrade is not None else 0


def _outcome(status: StreamingAppStatus) -> str:
    """Return how a repartition ended, empty if it has not, or there is none."""
    upgrade, known = status.upgrade, _of(status)
    if upgrade is None or known is None:
        return ""
    # One that was refused before anything was stopped has no result of its own.
    return known.result or ("Refused" if upgrade.phase is UpgradePhase.REFUSED else "")
