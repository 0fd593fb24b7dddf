"""The operator's metrics, in one place. No I/O: :mod:`tidegate.metrics.server` serves them.

What a driver's agent exports is not here: each metric has one owner. docs/metrics.md lists both.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector

from tidegate.metrics.autoscaling import AutoscalingFigures
from tidegate.metrics.control import ControlFigures
from tidegate.metrics.lifecycle import Restart
from tidegate.metrics.rehearsals import RehearsalFigures
from tidegate.metrics.repartitions import RepartitionFigures
from tidegate.metrics.snapshots import SnapshotFigures
from tidegate.metrics.upgrades import UpgradeFigures

# A time of creation beside every counter and histogram would double the number of series and tell nothing.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_APP = ("namespace", "app")

App = tuple[str, str]
"""Namespace and name of an application."""

DONE, REPEAT, ERROR = "done", "repeat", "error"
RESULTS = (DONE, REPEAT, ERROR)
"""How a reconcile ends: as planned; to be repeated for a cause outside of the operator; by a fault of the operator."""


class Figures:
    """Counters, histograms and gauges on a registry of their own."""

    def __init__(self) -> None:
        """Register everything."""
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._make_figures_of_the_process(registry)
        self._make_figures_of_applications(registry)
        self.snapshots = SnapshotFigures(registry)
        self.control = ControlFigures(registry)
        self.upgrades = UpgradeFigures(registry)
        self.rehearsals = RehearsalFigures(registry)
        self.repartitions = RepartitionFigures(registry)
        self.autoscaling = AutoscalingFigures(registry)
        # Looking a series up costs more than counting. Only series that are never removed may be kept like this.
        self._requests_of = functools.cache(self._requests.labels)
        self._request_seconds_of = functools.cache(self._request_seconds.labels)
        self._reconciles_of = functools.cache(self._reconciles.labels)
        self._actions_of = functools.cache(self._actions.labels)
        self._polls_of = functools.cache(self._polls.labels)
        self._events_of = functools.cache(self._events.labels)

    def _make_figures_of_the_process(self, registry: CollectorRegistry) -> None:
        self._reconciles = Counter("tidegate_reconciles", "Reconciles by result.", ("result",), registry=registry)
        self._reconcile_seconds = Histogram(
            "tidegate_reconcile_duration_seconds", "Duration of a reconcile.", buckets=_SECONDS, registry=registry
        )
        self._actions = Counter("tidegate_actions", "Actions carried out, by kind.", ("action",), registry=registry)
        self._requests = Counter(
            "tidegate_api_requests",
            "Requests to the API server by HTTP method (WATCH: a watch) and status; the code none: no answer came.",
            ("verb", "code"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "tidegate_api_request_duration_seconds",
            "Duration of a request to the API server; watches are not counted.",
            ("verb",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._polls = Counter("tidegate_agent_polls", "Questions to agents by result.", ("result",), registry=registry)
        self._events = Counter("tidegate_watch_events", "Watch events received.", ("resource",), registry=registry)
        self.queue_depth = Gauge(
            "tidegate_queue_depth",
            "Applications, snapshots and lines of control messages that wait for a worker.",
            registry=registry,
        )
        self._queue_seconds = Histogram(
            "tidegate_queue_wait_seconds",
            "Time from a wake-up to the start of the reconcile.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._loop_delay = Histogram(
            "tidegate_event_loop_delay_seconds",
            "Time by which the operator's event loop was late: something held it up, and all else waited.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._leader = Gauge(
            "tidegate_leader", "1 in the replica that leads, 0 in one that stands by.", registry=registry
        )
        for result in RESULTS:
            # An alert on a rate must see the first of them too, which a counter that starts with 1 would hide.
            self._reconciles.labels(result)

    def _make_figures_of_applications(self, registry: CollectorRegistry) -> None:
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
        self._shown: dict[App, tuple[str, str, str]] = {}
        self._restart_reasons: dict[App, set[str]] = {}

    def observe_loop_delay(self, seconds: float) -> None:
        """Take in by how much the event loop was late."""
        self._loop_delay.observe(seconds)

    def count_request(self, verb: str, code: str, seconds: float | None = None) -> None:
        """Count one request.

        Args:
            verb: the HTTP method, or ``WATCH``.
            code: the HTTP status, or ``none`` if there was no answer.
            seconds: until the answer was there; None for one that goes on, as a watch's does.
        """
        self._requests_of(verb, code).inc()
        if seconds is not None:
            self._request_seconds_of(verb).observe(seconds)

    def count_reconcile(self, result: str, seconds: float) -> None:
        """Count one reconcile by result: one of RESULTS."""
        self._reconciles_of(result).inc()
        self._reconcile_seconds.observe(seconds)

    def count_action(self, kind: str) -> None:
        """Count one action that was carried out."""
        self._actions_of(kind).inc()

    def count_poll(self, result: str) -> None:
        """Count one question to an agent by result."""
        self._polls_of(result).inc()

    def count_event(self, resource: str) -> None:
        """Count one watch event."""
        self._events_of(resource).inc()

    def observe_queue_latency(self, seconds: float) -> None:
        """Record how long a key waited."""
        self._queue_seconds.observe(seconds)

    def show_leader(self, leads: bool) -> None:
        """Show whether this replica leads."""
        self._leader.set(float(leads))

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
        """Count what :func:`tidegate.metrics.lifecycle.restarts_between` found."""
        for restart in restarts:
            self._restart_reasons.setdefault(app, set()).add(restart.reason)
            self._restarts.labels(*app, restart.reason).inc(restart.times)

    def forget_app(self, namespace: str, app: str) -> None:
        """Remove every series of an application that is gone."""
        key = (namespace, app)
        self.upgrades.forget(key)
        self.rehearsals.forget(key)
        self.repartitions.forget(key)
        self.autoscaling.forget(key)
        shown = self._shown.pop(key, None)
        if shown is not None:
            self._hide(key, shown)
            if shown[0]:
                self._epoch.remove(*key)
        for reason in self._restart_reasons.pop(key, ()):
            self._restarts.remove(*key, reason)

    def _hide(self, app: App, shown: tuple[str, str, str]) -> None:
        phase, health, reason = shown
        if phase:
            self._phase.remove(*app, phase)
        if health:
            self._health.remove(*app, health, reason)
