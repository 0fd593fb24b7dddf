"""Metrics about ControlMessages, by application: phases, results and durations. No I/O.

The series of an application end with the last of its messages.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tidegate.api.control_message import ControlMessage, MessagePhase
from tidegate.engine.app_names import AppNames
from tidegate.engine.app_series import AppSeries
from tidegate_spark.contract.reasons.entry import Place
from tidegate_spark.contract.reasons.registry import reasons_at
from tidegate_spark.contract.snapshot_protocol import SNAPSHOT_FAILURES

Key = tuple[str, str]
"""Namespace and name."""
_SECONDS = (1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 1800, 3600)
_REASONS = frozenset(reasons_at(Place.MESSAGE)) | frozenset(SNAPSHOT_FAILURES)
OTHER = "Other"
"""Reason of what the application gave a reason of its own: there may be any number of those."""


class ControlMetrics:
    """Numbers of messages, and of what became of them since the operator began."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        labels = ("namespace", "app")
        self._number = Gauge(
            "tidegate_control_messages", "ControlMessages by phase.", (*labels, "phase"), registry=registry
        )
        self._published = Counter(
            "tidegate_control_published", "ControlMessages that got into a control log.", labels, registry=registry
        )
        self._applied = Counter(
            "tidegate_control_applied",
            "ControlMessages that took effect in every query that listens.",
            labels,
            registry=registry,
        )
        self._failed = Counter(
            "tidegate_control_failed",
            f"ControlMessages that failed, by reason; {OTHER} if the application gave one of its own.",
            (*labels, "reason"),
            registry=registry,
        )
        self._expired = Counter(
            "tidegate_control_expired", "ControlMessages that were too late.", labels, registry=registry
        )
        self._publish_seconds = Histogram(
            "tidegate_control_publish_seconds",
            "Time from a ControlMessage's creation until it was seen in the control log; whole seconds.",
            labels,
            buckets=_SECONDS,
            registry=registry,
        )
        self._apply_seconds = Histogram(
            "tidegate_control_apply_seconds",
            "Time from a ControlMessage's creation until it was seen applied; whole seconds.",
            labels,
            buckets=_SECONDS,
            registry=registry,
        )
        self._shown: dict[Key, Count[str]] = {}
        self._series = AppSeries()
        self._names = AppNames()

    def show(self, app: Key, phases: Mapping[str, int]) -> None:
        """Show how many messages to an application are in each phase; with none, all that was counted of them goes."""
        if not self._names.admits(app):
            self._series.remove(app)
            return
        now = Count(phases)
        before = self._shown.get(app, Count())
        for phase in before.keys() - now.keys():
            self._number.remove(*app, phase)
        for phase, number in now.items():
            if before.get(phase) != number:
                self._number.labels(*app, phase).set(number)
        if app not in self._shown:
            self._names.add(app)
        self._shown[app] = now
        if not now:
            self._forget(app)

    def count(self, before: ControlMessage, after: ControlMessage) -> None:
        """Count what an operator's write says has become of a message.

        Args:
            before: as it was before that.
            after: as it is now.
        """
        app, old, new = after.app_key, before.status, after.status
        if not self._names.admits(app):
            return
        if new.published_time is not None and old.published_time is None:
            self._series.of(self._published, app).inc()
            self._series.of(self._publish_seconds, app).observe(
                max(0.0, new.published_time.timestamp() - after.created)
            )
        if new.phase is old.phase:
            return
        if new.phase is MessagePhase.APPLIED and new.completion_time is not None:
            self._series.of(self._applied, app).inc()
            self._series.of(self._apply_seconds, app).observe(max(0.0, new.completion_time.timestamp() - after.created))
        elif new.phase is MessagePhase.EXPIRED:
            self._series.of(self._expired, app).inc()
        elif new.phase is MessagePhase.FAILED:
            ready = new.condition("Ready")
            reason = ready.reason if ready is not None and ready.reason in _REASONS else OTHER
            self._series.of(self._failed, app, reason).inc()

    def _forget(self, app: Key) -> None:
        del self._shown[app]
        self._names.take(app)
        self._series.remove(app)
