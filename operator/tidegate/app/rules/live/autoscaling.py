"""Turns spec and status into the autoscaler's inputs, and its advice into the status. No I/O.

The target is written to the status before the driver gets it, so it outlives both processes. The spec is never written.
"""

from __future__ import annotations

import datetime

import msgspec

from tidegate.api.spec import AutoscalingSpec
from tidegate.api.status.autoscaler_memory import AutoscalerMemory, write_memory
from tidegate.api.status.autoscaling_status import AutoscalingMetrics, AutoscalingStatus, LastScale
from tidegate.app.observation import Observation
from tidegate.app.rules.live import autoscaling_messages
from tidegate.autoscaling.algorithm.bounds import LIMITS
from tidegate.autoscaling.algorithm.evaluate import usable_share
from tidegate.autoscaling.algorithm.large_batches import usable_rate
from tidegate.autoscaling.algorithm.past import SATURATED, Past
from tidegate.autoscaling.algorithm.recommend import Advice
from tidegate.autoscaling.algorithm.samples import number_of
from tidegate.autoscaling.rules.inputs import basis_of, is_autoscaled
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.pauses import hour_of
from tidegate_spark.contract.reasons import Reason, reason_from

REPORTED_ONCE = frozenset(LIMITS) - {Reason.EXECUTORS_MISSING}
"""What keeps needed executors away: an event says so when it begins. Missing ones are in the condition Ready."""


def autoscaling_status(o: Observation) -> AutoscalingStatus | None:
    """Return what the status is to say of the autoscaler: the newest advice or, before there is one, what it said."""
    spec = o.app.spec.autoscaling
    if spec is None or not spec.is_on:
        return None
    return msgspec.structs.replace(_advised_status(o, spec), basis=basis_of(o.app))


def _advised_status(o: Observation, spec: AutoscalingSpec) -> AutoscalingStatus:
    known = o.app.status.autoscaling
    active, advice = is_autoscaled(o.app), o.advice
    if advice is None or advice.mode != spec.mode.value:
        if known is None or known.mode == spec.mode.value:
            return known or AutoscalingStatus(mode=spec.mode.value)
        # Another mode forgets the decisions of this one, and keeps what was learned of the program.
        return AutoscalingStatus(mode=spec.mode.value, memory=known.memory)
    evaluation, past = advice.evaluation, advice.evaluation.past
    return AutoscalingStatus(
        mode=spec.mode.value,
        target=(past.target or None) if active else None,
        recommended=evaluation.recommended,
        reason=evaluation.step.value,
        message=advice.message,
        evaluation_time=_time(advice.at),
        last_scale=_last_scale(past) if active else None,
        memory=write_memory(_remembered(past, active=active)),
        metrics=_metrics(advice),
    )


def scaling_events(o: Observation, now: float) -> tuple[PublishEvent, ...]:
    """Publish a new target, and once, when it begins, what keeps needed executors away."""
    known, new = o.app.status.autoscaling, autoscaling_status(o)
    if new is None or o.advice is None or not new.reason:
        return ()
    events: tuple[PublishEvent, ...] = ()
    before = known.last_scale if known is not None else None
    scale = new.last_scale
    if scale is not None and scale.scale_time is not None and (before is None or before.scale_time != scale.scale_time):
        events = (PublishEvent(Reason.AUTOSCALED, scale.message, False, f"{scale.scale_time.timestamp():.0f}"),)
    limited = o.advice.evaluation.step in REPORTED_ONCE
    if limited and (known is None or known.reason != new.reason):
        occasion = f"{o.app.metadata.generation}/{new.target}/{hour_of(o.advice.at)}"
        # Without numbers, which change: near a bound it starts repeatedly, and is reported once an hour.
        message = autoscaling_messages.with_metrics(o.advice.summary) if o.advice.summary else new.message
        events = (*events, PublishEvent(reason_from(new.reason), message, new.reason != Reason.AT_MAXIMUM, occasion))
    return events


def _remembered(past: Past, *, active: bool) -> AutoscalerMemory:
    judged = active and bool(past.scaled_at and past.capacity_before)
    return AutoscalerMemory(
        version=past.version,
        usable_share=round(past.packing, 3),
        executors=past.packed_with,
        ineffective_time=_time(past.held_at) if past.held else None,
        ineffective_executors=past.held,
        ineffective_from=past.held_from,
        ineffective_rows_per_second_before=round(past.held_before, 1),
        ineffective_rows_per_second_after=round(past.held_after, 1),
        ineffective_rows_per_second_arriving=round(past.held_arriving, 1),
        ineffective_times=past.held_times,
        tasks_at_once=past.tasks_at_once,
        rows_per_second_per_executor=round(past.large.rate, 3),
        rows_per_batch=round(past.large.rows, 1),
        shares=tuple(round(share, 3) for share in past.large.shares),
        scaled_rows_per_second=round(past.capacity_before, 1) if judged else 0.0,
        scaled_executors=past.capacity_with if judged and past.capacity_with != past.scaled_from else 0,
        scaled_busy=round(past.capacity_busy, 3) if judged else SATURATED,
    )


def _last_scale(past: Past) -> LastScale | None:
    if not past.scaled_at:
        return None
    return LastScale(
        scale_time=_time(past.scaled_at),
        from_=past.scaled_from,
        to=past.target,
        reason=past.scaled_reason,
        message=past.scaled_message,
    )


def _metrics(advice: Advice) -> AutoscalingMetrics | None:
    m, evaluation = advice.measured, advice.evaluation
    if m is None:
        return None
    return AutoscalingMetrics(
        executors=m.executors,
        arriving_rows_per_second=round(m.arriving, 1),
        processed_rows_per_second=round(m.processed, 1),
        rows_per_second_per_executor=round(usable_rate(evaluation.past.large, m), 1),
        rows_per_batch=round(m.rows_per_batch, 1),
        utilization_percent=round(100 * m.utilization),
        busy_percent=round(100 * m.busy),
        usable_percent=round(100 * usable_share(evaluation.past, m.executors)),
        lag_rows=m.lag_rows if m.lag_rows >= 0 else None,
        backlog_rows=number_of(round(m.backlog)),
        idle_executors=m.idle_executors if m.idle_executors >= 0 else None,
        needed_executors=round(evaluation.needed, 1),
        upper_bound=evaluation.bounds.high if evaluation.bounds is not None else 0,
        window_seconds=round(m.seconds),
    )


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
