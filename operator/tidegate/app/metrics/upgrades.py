"""Metrics about upgrades and rollbacks: results and durations. No I/O."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tidegate.api.status.status import StreamingAppStatus, UpgradePhase, UpgradeStatus
from tidegate.app.metrics.durations import seconds_between
from tidegate.engine.app_series import AppSeries

App = tuple[str, str]
"""Namespace and name of an application."""
ENDS = frozenset(
    {
        UpgradePhase.COMPLETED,
        UpgradePhase.FAILED,
        UpgradePhase.ROLLED_BACK,
        UpgradePhase.REFUSED,
        UpgradePhase.WITHDRAWN,
    }
)
"""Phases that no other one follows by itself; each is an outcome."""
_SECONDS = (10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600, 7200)


class UpgradeMetrics:
    """Outcomes and durations of changes of version since the operator began."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._ended = Counter(
            "tidegate_app_upgrades",
            "Upgrades that came to an end, by outcome: Completed, RolledBack, Failed, Refused or Withdrawn.",
            ("namespace", "app", "outcome"),
            registry=registry,
        )
        self._under_way = Gauge(
            "tidegate_app_upgrade_phase",
            "1 for the phase of an application's last upgrade.",
            ("namespace", "app", "phase"),
            registry=registry,
        )
        self._seconds = Histogram(
            "tidegate_upgrade_duration_seconds",
            "From the edit to the first end of an upgrade, over all applications, by outcome.",
            ("outcome",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._rollback_seconds = Histogram(
            "tidegate_rollback_duration_seconds",
            "From the decision to roll back until the previous version runs, over all applications.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._shown: dict[App, str] = {}
        self._series = AppSeries()
        self._over: dict[App, int] = {}
        """The last upgrade that is known to have ended, by its number: what follows is not how long it took."""

    def show(self, app: App, before: StreamingAppStatus, after: StreamingAppStatus) -> None:
        """Show the phase of an application's last upgrade, and count one that has just ended.

        Args:
            app: namespace and name.
            before: its status as it was before an operator's write.
            after: as it is now.
        """
        new, old = after.upgrade, before.upgrade
        if new is None:
            self._hide(app)
            return
        if self._shown.get(app) != new.phase.value:
            self._hide(app)
            self._shown[app] = new.phase.value
            self._under_way.labels(*app, new.phase.value).set(1)
        over = self._is_over(app, old, new)
        if new.phase not in ENDS or (old is not None and (old.number, old.phase) == (new.number, new.phase)):
            return
        self._series.of(self._ended, app, new.phase.value).inc()
        if new.phase_start_time is None:
            return
        if new.start_time is not None and not over:
            self._seconds.labels(new.phase.value).observe(seconds_between(new.start_time, new.phase_start_time))
        if new.phase is UpgradePhase.ROLLED_BACK and old is not None and old.phase_start_time is not None:
            self._rollback_seconds.observe(seconds_between(old.phase_start_time, new.phase_start_time))

    def forget(self, app: App) -> None:
        """Remove every series of an application that is gone."""
        self._hide(app)
        self._over.pop(app, None)
        self._series.remove(app)

    def _is_over(self, app: App, old: UpgradeStatus | None, new: UpgradeStatus) -> bool:
        """Return whether the upgrade had an end before, as one that is taken back by hand later; note that it has."""
        ended_before = old is not None and old.number == new.number and old.phase in ENDS
        over = ended_before or self._over.get(app) == new.number
        if new.phase in ENDS or over:
            self._over[app] = new.number
        return over

    def _hide(self, app: App) -> None:
        phase = self._shown.pop(app, None)
        if phase is not None:
            self._under_way.remove(*app, phase)
