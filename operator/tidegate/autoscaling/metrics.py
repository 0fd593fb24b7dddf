"""Metrics about autoscaling, by application. No I/O.

A measured series exists only while it is measured, because an old value would look like a present one.
"""

from __future__ import annotations

import functools

from prometheus_client import CollectorRegistry, Counter, Gauge

from tidegate.autoscaling.algorithm.evaluate import usable_share
from tidegate.autoscaling.algorithm.large_batches import usable_rate
from tidegate.autoscaling.algorithm.recommend import Advice
from tidegate.autoscaling.algorithm.settings import Mode
from tidegate.engine.app_series import AppSeries

App = tuple[str, str]
"""Namespace and name of an application."""
_LABELS = ("namespace", "app")


class AutoscalerMetrics:
    """What the autoscaler recommends, why, and what it did since the operator began."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything."""
        self._register_measured(registry)
        self._register_decisions(registry)
        self._shown: dict[App, tuple[str, str]] = {}
        self._measured: set[App] = set()
        self._series = AppSeries()

    def _register_measured(self, registry: CollectorRegistry) -> None:
        gauge = functools.partial(Gauge, labelnames=_LABELS, registry=registry)
        self._needed = gauge(
            "tidegate_autoscaling_needed_executors",
            "Executors that are needed before any bound, in fractions.",
        )
        self._most = gauge(
            "tidegate_autoscaling_upper_bound_executors",
            "The most executors that can be recommended now; where it is reached, the reason says what sets it.",
        )
        self._arriving = gauge("tidegate_autoscaling_arriving_rows_per_second", "Rows that arrive, in a second.")
        self._usable = gauge(
            "tidegate_autoscaling_usable_share",
            "Share of the executors' time that batches can use, from 0 to 1.",
        )
        self._rate = gauge(
            "tidegate_autoscaling_executor_rows_per_second",
            "Rows that one executor can do in a second in which it does nothing else, as the last decision took it: "
            "where one small batch follows the other, in large ones.",
        )
        self._utilization = gauge(
            "tidegate_autoscaling_utilization",
            "Share of the executors' time in which they worked, from 0 to 1.",
        )
        self._backlog = gauge("tidegate_autoscaling_backlog_rows", "Rows that are to be caught up with.")
        of_load = (self._needed, self._rate, self._utilization, self._backlog)
        self._of_measured = (*of_load, self._arriving, self._usable, self._most)

    def _register_decisions(self, registry: CollectorRegistry) -> None:
        self._recommended = Gauge(
            "tidegate_autoscaling_recommended_executors",
            "Executors that the autoscaler recommends.",
            _LABELS,
            registry=registry,
        )
        self._ignored = Gauge(
            "tidegate_autoscaling_instances_ignored",
            "1 while an executor.instances that was changed has no effect, because the autoscaler is Active; else 0.",
            _LABELS,
            registry=registry,
        )
        self._reason = Gauge(
            "tidegate_autoscaling_reason",
            "1 for the autoscaler's mode and the reason of its last decision.",
            (*_LABELS, "mode", "reason"),
            registry=registry,
        )
        self._scaled = Counter(
            "tidegate_autoscaling_scalings",
            "Changes of the target by the autoscaler, by direction: up or down.",
            (*_LABELS, "direction"),
            registry=registry,
        )

    def show(self, app: App, advice: Advice, *, ignores_instances: bool = False) -> None:
        """Show an advice, and count it if it was acted upon.

        Args:
            app: namespace and name.
            advice: the newest.
            ignores_instances: somebody else has changed ``executor.instances``, in vain.
        """
        evaluation, reason = advice.evaluation, (advice.mode.value, advice.evaluation.step.value)
        self._recommended.labels(*app).set(evaluation.recommended)
        self._ignored.labels(*app).set(float(ignores_instances))
        if self._shown.get(app) != reason:
            self._hide_reason(app)
            self._shown[app] = reason
            self._reason.labels(*app, *reason).set(1)
        if advice.measured is None:
            self._hide_measured(app)
        else:
            self._measured.add(app)
            self._needed.labels(*app).set(evaluation.needed)
            self._rate.labels(*app).set(usable_rate(evaluation.past.large, advice.measured))
            self._utilization.labels(*app).set(advice.measured.utilization)
            self._backlog.labels(*app).set(advice.measured.backlog)
            self._arriving.labels(*app).set(advice.measured.arriving)
            self._usable.labels(*app).set(usable_share(evaluation.past, advice.measured.executors))
            self._most.labels(*app).set(evaluation.bounds.high if evaluation.bounds is not None else 0)
        if evaluation.due and advice.mode is Mode.ACTIVE:
            direction = "up" if evaluation.recommended > evaluation.current else "down"
            self._series.of(self._scaled, app, direction).inc()

    def forget(self, app: App) -> None:
        """Remove every series of an application."""
        if app not in self._shown:
            return
        self._hide_reason(app)
        self._recommended.remove(*app)
        self._ignored.remove(*app)
        self._hide_measured(app)
        self._series.remove(app)

    def _hide_measured(self, app: App) -> None:
        if app not in self._measured:
            return
        self._measured.discard(app)
        for gauge in self._of_measured:
            gauge.remove(*app)

    def _hide_reason(self, app: App) -> None:
        reason = self._shown.pop(app, None)
        if reason is not None:
            self._reason.remove(*app, *reason)
