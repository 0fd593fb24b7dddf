"""The operator's metrics; :mod:`tidegate.wiring.metrics_server` serves them. No I/O.

Metrics of drivers are exported by their agents: each metric has one owner. docs/metrics.md lists both.
"""

from __future__ import annotations

import functools

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector

from tidegate.app.metrics.apps import AppMetrics
from tidegate.autoscaling.metrics import AutoscalerMetrics
from tidegate.control.metrics import ControlMetrics
from tidegate.engine.workqueue import RESULTS
from tidegate.snapshots.metrics import SnapshotMetrics

# A time of creation beside every counter and histogram would double the number of series and show nothing.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class OperatorMetrics(AppMetrics):
    """Counters, histograms and gauges on a registry of their own."""

    def __init__(self) -> None:
        """Register everything."""
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._make_reconcile_metrics(registry)
        self._make_process_metrics(registry)
        super().__init__(registry)
        self.snapshots = SnapshotMetrics(registry)
        self.control = ControlMetrics(registry)
        self.autoscaling = AutoscalerMetrics(registry)
        # Looking a series up costs more than counting. Only series that are never removed may be kept like this.
        self._requests_of = functools.cache(self._requests.labels)
        self._request_seconds_of = functools.cache(self._request_seconds.labels)
        self._reconciles_of = functools.cache(self._reconciles.labels)
        self._actions_of = functools.cache(self._actions.labels)
        self._polls_of = functools.cache(self._polls.labels)
        self._events_of = functools.cache(self._events.labels)

    def _make_reconcile_metrics(self, registry: CollectorRegistry) -> None:
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
        for result in RESULTS:
            # An alert on a rate must see the first of them too, which a counter that starts with 1 would hide.
            self._reconciles.labels(result)

    def _make_process_metrics(self, registry: CollectorRegistry) -> None:
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
        self.left_out = Gauge(
            "tidegate_namespaces_left_out",
            "Namespaces of watchNamespaces that this replica leaves out: it could not read them when it began.",
            registry=registry,
        )

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

    def forget_app(self, namespace: str, app: str) -> None:
        """Remove every series of an application that is gone."""
        super().forget_app(namespace, app)
        self.autoscaling.forget((namespace, app))
