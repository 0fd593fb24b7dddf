"""Evaluates one application and wakes it if the advice changed. Reads ResourceQuotas; else no I/O.

The application's own reconcile writes the advice to the status and sends it to the driver: one writer per application.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from tidegate.api.spec import AutoscalingMode
from tidegate.api.streaming_app import StreamingApp
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.recommend import Advice, recommend
from tidegate.autoscaling.algorithm.samples import History
from tidegate.autoscaling.algorithm.settings import PERIOD, Settings
from tidegate.autoscaling.index import AutoscalingIndex, Watched
from tidegate.autoscaling.metrics import AutoscalerMetrics
from tidegate.autoscaling.observe import see
from tidegate.autoscaling.quotas import Quotas
from tidegate.autoscaling.rules.inputs import basis_of, past_of, settings_of
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.reports import find_pod
from tidegate.engine.resource_key import Key
from tidegate.pods.records.names import driver_pod_name
from tidegate_spark.contract.protocol import ROLE_DRIVER, ROLE_EXECUTOR
from tidegate_spark.contract.reasons import Reason

log = structlog.get_logger()


@dataclass(slots=True)
class AutoscalingReconciler:
    """Looks at one application."""

    index: Index
    quotas: Quotas
    metrics: AutoscalerMetrics
    wake_app: Callable[[Key], None]
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic

    async def reconcile(self, key: Key) -> float | None:
        """Look at an application; returns seconds until the next look, or None if the autoscaler is off.

        Raises:
            NotLeadingError: this process does not lead any more.
        """
        known = self.index.app(key)
        app = known.app if isinstance(known, KnownApp) else None
        spec = app.spec.autoscaling if app is not None and app.metadata.deletion_timestamp is None else None
        if app is None or spec is None or not spec.is_on:
            self.index.of(AutoscalingIndex).forget_app(key)
            self.metrics.forget(key)
            return None
        before = self.index.of(AutoscalingIndex).get(app)
        watched = await self._check(app, settings_of(spec), before)
        if watched is None:
            return PERIOD
        self.index.of(AutoscalingIndex).put(key, watched)
        basis = basis_of(app)
        self.metrics.show(key, watched.advice, ignores_instances=basis is not None and basis.ignored is not None)
        if before is None or _news(before.advice) != _news(watched.advice):
            self.wake_app(key)
        if watched.advice.evaluation.due and spec.mode is AutoscalingMode.ACTIVE:
            log.info(watched.advice.message, step=watched.advice.evaluation.step.value)
        return PERIOD

    async def _check(self, app: StreamingApp, settings: Settings, before: Watched | None) -> Watched | None:
        key = (app.metadata.namespace, app.metadata.name)
        sight = see(self.index, key, self.clock(), self.steady())
        if sight is None:
            return None
        past, history = _begin(app, settings, before)
        history, advice = recommend(settings, history, past, sight)
        if advice.evaluation.recommended > advice.evaluation.current:
            # Only if more are wanted, because few namespaces have quotas.
            pods = self.index.pods(key)
            executors = [pod for pod in pods if pod.role == ROLE_EXECUTOR]
            driver = find_pod(pods, driver_pod_name(key[1]), ROLE_DRIVER)
            quota = await self.quotas.room(app, executors, driver, advice.evaluation.recommended)
            if quota is not None:
                sight = dataclasses.replace(sight, quota=quota)
                history, advice = recommend(settings, history, past, sight)
        return Watched(app.metadata.uid, history, advice.evaluation.past, advice)


def _begin(app: StreamingApp, settings: Settings, before: Watched | None) -> tuple[Past, History]:
    if before is not None and before.advice.mode is settings.mode:
        return before.past, before.history
    known = app.status.autoscaling
    same = known is not None and known.mode == settings.mode.value
    past = past_of(known)
    if not same:
        # Decisions of another mode do not count.
        past = Past(
            packing=past.packing,
            packed_with=past.packed_with,
            tasks_at_once=past.tasks_at_once,
            large=past.large,
            version=past.version,
        )
    return past, before.history if before is not None else History()


def _news(advice: Advice) -> tuple[object, ...]:
    evaluation = advice.evaluation
    step = evaluation.step if evaluation.step is not Reason.MEASURING else Reason.STEADY
    return (advice.mode, step, evaluation.recommended, evaluation.past.target, int(evaluation.past.scaled_at))
