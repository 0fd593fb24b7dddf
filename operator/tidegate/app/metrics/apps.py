"""Metrics about applications: phase, health, launches, restarts and results of changes. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from tidegate.app.metrics.lifecycle import Restart
from tidegate.app.metrics.rehearsals import RehearsalMetrics
from tidegate.app.metrics.repartitions import RepartitionMetrics
from tidegate.app.metrics.upgrades import UpgradeMetrics
from tidegate.engine.app_series import AppSeries

App = tuple[str, str]
"""Namespace and name of an application."""
_APP = ("namespace", "app")


class AppMetrics:
    """What is shown of each application, until it is gone."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self.upgrades = UpgradeMetrics(registry)
        self.rehearsals = RehearsalMetrics(registry)
        self.repartitions = RepartitionMetrics(registry)
        self._phase = Gauge(
            "tidegate_app_phase", "1 for the phase an application is in.", (*_APP, "phase"), registry=registry
        )
        self._health = Gauge(
            "tidegate_app_health",
            "1 for what is true of an application (Ready, Reconciling or Stalled), with the reason.",
            (*_APP, "health", "reason"),
            registry=registry,
        )
        self._epoch = Gauge("tidegate_app_epoch", "Launches of an application so far.", _APP, registry=registry)
        self._restarts = Counter(
            "tidegate_app_restarts",
            "Driver processes that ended and were followed by another one, by the reason of their end.",
            (*_APP, "reason"),
            registry=registry,
        )
        self._refused = Counter(
            "tidegate_app_snapshots_refused",
            "Failed attempts to create a StreamSnapshot that is due: one every five minutes if the API server refuses "
            "it, else one every 30 seconds.",
            _APP,
            registry=registry,
        )
        self._shown: dict[App, tuple[str, str, str]] = {}
        self._series = AppSeries()

    def show_app(self, app: App, *, phase: str, health: str, reason: str, epoch: int) -> None:
        """Show an application's phase, health and epoch; only what is true now has a series.

        Args:
            app: namespace and name.
            phase: of its status.
            health: the condition that is true; empty if none is.
            reason: that condition's.
            epoch: number of its last launch.
        """
        before, now = self._shown.get(app), (phase, health, reason)
        self._epoch.labels(*app).set(epoch)
        if before == now:
            return
        if before is not None:
            self._hide(app, before)
        self._shown[app] = now
        self._phase.labels(*app, phase).set(1)
        if health:
            self._health.labels(*app, health, reason).set(1)

    def show_health(self, app: App, *, health: str, reason: str) -> None:
        """Show the health of an application of which nothing else can be read; what was shown of its phase stays."""
        before = self._shown.get(app, ("", "", ""))
        if before[1]:
            self._health.remove(*app, *before[1:])
        self._shown[app] = (before[0], health, reason)
        self._health.labels(*app, health, reason).set(1)

    def count_restarts(self, app: App, restarts: Iterable[Restart]) -> None:
        """Count what :func:`tidegate.app.metrics.lifecycle.restarts_between` found."""
        for restart in restarts:
            self._series.of(self._restarts, app, restart.reason).inc(restart.times)

    def count_refused_snapshot(self, app: App) -> None:
        """Count an attempt to create a StreamSnapshot that the API server refused."""
        self._series.of(self._refused, app).inc()

    def forget_app(self, namespace: str, app: str) -> None:
        """Remove every series of an application that is gone."""
        key = (namespace, app)
        self.upgrades.forget(key)
        self.rehearsals.forget(key)
        self.repartitions.forget(key)
        shown = self._shown.pop(key, None)
        if shown is not None:
            self._hide(key, shown)
            if shown[0]:
                self._epoch.remove(*key)
        self._series.remove(key)

    def _hide(self, app: App, shown: tuple[str, str, str]) -> None:
        phase, health, reason = shown
        if phase:
            self._phase.remove(*app, phase)
        if health:
            self._health.remove(*app, health, reason)
