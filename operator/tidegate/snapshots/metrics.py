"""Metrics about StreamSnapshots, by application: phases, failures, time of the newest complete one. No I/O.

A series ends with the last snapshot that it counts.
"""

from __future__ import annotations

from collections import Counter as Count

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot
from tidegate.engine.app_names import AppNames
from tidegate.engine.app_series import AppSeries
from tidegate.snapshots.rules.status import size_of

Key = tuple[str, str]
"""Namespace and name."""
_Group = tuple[str, str, str]
"""Namespace, application and phase."""
_SECONDS = (5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600, 7200)


class SnapshotMetrics:
    """Numbers of snapshots, and of failures since the operator began."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._number = Gauge(
            "tidegate_snapshots", "StreamSnapshots by phase.", ("namespace", "app", "phase"), registry=registry
        )
        self._failed = Counter(
            "tidegate_snapshots_failed",
            "StreamSnapshots that were given up for good, by reason.",
            ("namespace", "app", "reason"),
            registry=registry,
        )
        self._expired = Counter(
            "tidegate_snapshots_expired",
            "Scheduled StreamSnapshots that were removed because others are kept, or for their age.",
            ("namespace", "app"),
            registry=registry,
        )
        self._verified = Counter(
            "tidegate_snapshots_verified",
            "StreamSnapshots that were read back, by result: whole, damaged or unknown.",
            ("namespace", "app", "result"),
            registry=registry,
        )
        self._exported = Counter(
            "tidegate_snapshots_exported",
            "Exports of StreamSnapshots that have ended, by result: complete or failed.",
            ("namespace", "app", "result"),
            registry=registry,
        )
        self._register_newest(registry)
        self._register_pods(registry)
        self._series = AppSeries()
        self._shown: dict[Key, _Group] = {}
        self._names = AppNames()
        self._sizes: Count[_Group] = Count()

    def _register_newest(self, registry: CollectorRegistry) -> None:
        self._newest = Gauge(
            "tidegate_snapshots_newest_timestamp_seconds",
            "When the newest StreamSnapshot that is there was complete, in seconds since 1970.",
            ("namespace", "app"),
            registry=registry,
        )
        self._newest_size = Gauge(
            "tidegate_snapshots_newest_bytes",
            "Size of the newest StreamSnapshot that is there, whatever it shares with earlier ones; no value if its "
            "status does not say it.",
            ("namespace", "app"),
            registry=registry,
        )
        self._ready: dict[Key, dict[Key, tuple[float, int | None]]] = {}
        """By application, when each was complete, and how large it is, where its status says so."""
        self._with_size: set[Key] = set()

    def _register_pods(self, registry: CollectorRegistry) -> None:
        # A driver's agent counts its own snapshots: none is in both.
        labels = ("namespace", "app")
        self._pod_seconds = Histogram(
            "tidegate_snapshot_pod_seconds",
            "Time from the beginning of a snapshot that a pod took, because no driver ran, to its being complete.",
            labels,
            buckets=_SECONDS,
            registry=registry,
        )
        self._pod_copied = Counter(
            "tidegate_snapshot_pod_copied_bytes", "Copied for snapshots that pods took.", labels, registry=registry
        )
        self._pod_shared = Counter(
            "tidegate_snapshot_pod_shared_bytes",
            "Not copied for snapshots that pods took, because an earlier one had it already.",
            labels,
            registry=registry,
        )

    def show(self, before: StreamSnapshot, after: StreamSnapshot) -> None:
        """Show a snapshot's phase, and count it if it has just failed.

        Args:
            before: as it was before an operator's write.
            after: as it is now.
        """
        phase = after.status.phase
        if phase is None:
            return
        if not self._names.admits(after.app_key):
            self._series.remove(after.app_key)
            return
        group = (*after.app_key, phase.value)
        if self._shown.get(after.key) != group:
            self._leave(after.key)
            self._shown[after.key] = group
            self._names.add(after.app_key)
            self._sizes[group] += 1
            self._number.labels(*group).set(self._sizes[group])
        if phase is SnapshotPhase.READY and after.status.ready_time is not None:
            complete = (after.status.ready_time.timestamp(), size_of(after.status))
            self._ready.setdefault(after.app_key, {})[after.key] = complete
            self._show_newest(after.app_key)
        else:
            self._forget_ready(after.app_key, after.key)
        if phase is SnapshotPhase.FAILED and before.status.phase is not phase:
            ready = after.status.condition("Ready")
            reason = ready.reason if ready is not None else ""
            self._series.of(self._failed, after.app_key, reason).inc()

    def count_expired(self, app: Key) -> None:
        """Count a snapshot that the retention of an application removed."""
        self._add(1, self._expired, app)

    def count_verified(self, app: Key, result: str) -> None:
        """Count a snapshot that was read back; whether it is whole is unknown if that could not be done."""
        self._add(1, self._verified, app, result)

    def count_exported(self, app: Key, complete: bool) -> None:
        """Count an export that has ended."""
        self._add(1, self._exported, app, "complete" if complete else "failed")

    def count_taken_by_pod(self, app: Key, seconds: float, *, copied: int, shared: int) -> None:
        """Count a snapshot that a pod took, with its time and the bytes that were copied, and that were not."""
        self._add(seconds, self._pod_seconds, app)
        self._add(max(0, copied), self._pod_copied, app)
        self._add(max(0, shared), self._pod_shared, app)

    def _add(self, number: float, metric: Counter | Histogram, app: Key, *labels: str) -> None:
        """Add a number to an application's series, if there is room for its name."""
        if not self._names.admits(app):
            return
        if isinstance(metric, Histogram):
            self._series.of(metric, app, *labels).observe(number)
        else:
            self._series.of(metric, app, *labels).inc(number)

    def forget(self, key: Key) -> None:
        """Remove what a snapshot that is gone was counted in; with an application's last one, its failures too."""
        group = self._shown.get(key)
        was_last = self._leave(key)
        if group is not None:
            self._forget_ready(group[:2], key)
            if was_last:
                self._series.remove(group[:2])

    def _forget_ready(self, app: Key, key: Key) -> None:
        if self._ready.get(app, {}).pop(key, None) is not None:
            self._show_newest(app)

    def _show_newest(self, app: Key) -> None:
        size: int | None = None
        if self._ready[app]:
            complete, size = max(self._ready[app].values(), key=lambda known: known[0])
            self._newest.labels(*app).set(complete)
        else:
            del self._ready[app]
            self._newest.remove(*app)
        if size is not None:
            self._with_size.add(app)
            self._newest_size.labels(*app).set(size)
        elif app in self._with_size:
            self._with_size.remove(app)
            self._newest_size.remove(*app)

    def _leave(self, key: Key) -> bool:
        """Count a snapshot no more; return whether nothing else is shown of its application."""
        group = self._shown.pop(key, None)
        if group is None:
            return False
        self._sizes[group] -= 1
        if self._sizes[group] > 0:
            self._number.labels(*group).set(self._sizes[group])
        else:
            del self._sizes[group]
            self._number.remove(*group)
        return self._names.take(group[:2])
