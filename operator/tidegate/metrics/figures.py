"""The operator's figures, in one place. No I/O: :mod:`tidegate.metrics.server` serves them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Figures:
    """Counters, histograms and gauges on a registry of their own."""

    def __init__(self) -> None:
        """Register everything."""
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._reconciles = Counter("tidegate_reconciles", "Reconciles by result.", ("result",), registry=registry)
        self._reconcile_seconds = Histogram(
            "tidegate_reconcile_seconds", "Duration of a reconcile.", buckets=_SECONDS, registry=registry
        )
        self._actions = Counter("tidegate_actions", "Actions carried out by kind.", ("action",), registry=registry)
        self._requests = Counter(
            "tidegate_api_requests", "Requests to the API server.", ("verb", "code"), registry=registry
        )
        self._request_seconds = Histogram(
            "tidegate_api_request_seconds",
            "Duration of a request to the API server.",
            ("verb",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._polls = Counter("tidegate_agent_polls", "Questions to agents by result.", ("result",), registry=registry)
        self._events = Counter("tidegate_watch_events", "Watch events received.", ("resource",), registry=registry)
        self.queue_depth = Gauge("tidegate_queue_depth", "Keys that wait for a worker.", registry=registry)
        self._queue_seconds = Histogram(
            "tidegate_queue_seconds",
            "Time from a wake-up to the start of the reconcile.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._phase = Gauge(
            "tidegate_app_phase",
            "1 for the phase an application is in.",
            ("namespace", "app", "phase"),
            registry=registry,
        )
        self._phases: dict[tuple[str, str], str] = {}

    def count_request(self, verb: str, code: str, seconds: float) -> None:
        """Count one request; ``code`` is the HTTP status or ``none`` without an answer."""
        self._requests.labels(verb, code).inc()
        self._request_seconds.labels(verb).observe(seconds)

    def count_reconcile(self, result: str, seconds: float) -> None:
        """Count one reconcile by result: ``done``, ``repeat`` or ``error``."""
        self._reconciles.labels(result).inc()
        self._reconcile_seconds.observe(seconds)

    def count_action(self, kind: str) -> None:
        """Count one action that was carried out."""
        self._actions.labels(kind).inc()

    def count_poll(self, result: str) -> None:
        """Count one question to an agent by result."""
        self._polls.labels(result).inc()

    def count_event(self, resource: str) -> None:
        """Count one watch event."""
        self._events.labels(resource).inc()

    def observe_queue_latency(self, seconds: float) -> None:
        """Record how long a key waited."""
        self._queue_seconds.observe(seconds)

    def show_phase(self, namespace: str, app: str, phase: str) -> None:
        """Show the phase of an application; only the current one has a series."""
        known = self._phases.get((namespace, app))
        if known == phase:
            return
        if known is not None:
            self._phase.remove(namespace, app, known)
        self._phases[namespace, app] = phase
        self._phase.labels(namespace, app, phase).set(1)

    def forget_app(self, namespace: str, app: str) -> None:
        """Remove an application's series."""
        phase = self._phases.pop((namespace, app), None)
        if phase is not None:
            self._phase.remove(namespace, app, phase)
