"""The operator's figures about StreamSnapshots. No I/O.

By application: how many of each phase there are, and how many failed. A series goes with the last snapshot it counts.
"""

from __future__ import annotations

from collections import Counter as Count

from prometheus_client import CollectorRegistry, Counter, Gauge

from tidegate.model.stream_snapshot import SnapshotPhase, StreamSnapshot

Key = tuple[str, str]
"""Namespace and name."""
_Group = tuple[str, str, str]
"""Namespace, application and phase."""


class SnapshotFigures:
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
        self._shown: dict[Key, _Group] = {}
        self._sizes: Count[_Group] = Count()
        self._reasons: dict[Key, set[str]] = {}

    def show(self, before: StreamSnapshot, after: StreamSnapshot) -> None:
        """Show a snapshot's phase, and count it if it has just failed.

        Args:
            before: as it was before an operator's write.
            after: as it is now.
        """
        phase = after.status.phase
        if phase is None:
            return
        group = (*after.app_key, phase.value)
        if self._shown.get(after.key) != group:
            self._leave(after.key)
            self._shown[after.key] = group
            self._sizes[group] += 1
            self._number.labels(*group).set(self._sizes[group])
        if phase is SnapshotPhase.FAILED and before.status.phase is not phase:
            ready = after.status.condition("Ready")
            reason = ready.reason if ready is not None else ""
            self._reasons.setdefault(after.app_key, set()).add(reason)
            self._failed.labels(*after.app_key, reason).inc()

    def forget(self, key: Key) -> None:
        """Remove what a snapshot that is gone was counted in; with an application's last one, its failures too."""
        group = self._shown.get(key)
        self._leave(key)
        if group is None or any(other[:2] == group[:2] for other in self._shown.values()):
            return
        for reason in self._reasons.pop(group[:2], ()):
            self._failed.remove(*group[:2], reason)

    def _leave(self, key: Key) -> None:
        group = self._shown.pop(key, None)
        if group is None:
            return
        self._sizes[group] -= 1
        if self._sizes[group] > 0:
            self._number.labels(*group).set(self._sizes[group])
        else:
            del self._sizes[group]
            self._number.remove(*group)
