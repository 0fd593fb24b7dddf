"""Reads spec and status into the autoscaler's own types. No I/O."""

from __future__ import annotations

import datetime

import msgspec

from tidegate.api.spec import AutoscalingMode, AutoscalingSpec
from tidegate.api.status.autoscaler_memory import read_memory
from tidegate.api.status.autoscaling_status import AutoscalingStatus, LastScale
from tidegate.api.streaming_app import AutoscalingBasis, StreamingApp
from tidegate.api.values.times import fault_of
from tidegate.autoscaling.algorithm.large_batches import LargeBatches
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.samples import KEPT_SECONDS
from tidegate.autoscaling.algorithm.settings import ExcludedPeriod, Mode, Settings


def is_autoscaled(app: StreamingApp) -> bool:
    """Return whether the autoscaler decides how many executors there are."""
    spec = app.spec.autoscaling
    return spec is not None and spec.mode is AutoscalingMode.ACTIVE


def settings_of(spec: AutoscalingSpec) -> Settings:
    """Return what a person asks of the autoscaler, without excluded periods whose schedule has no times."""
    return Settings(
        most=spec.max_executors,
        fewest=min(spec.min_executors, spec.max_executors),
        mode=Mode(spec.mode.value),
        utilization=spec.target_utilization_percent / 100,
        catch_up=float(spec.catch_up_seconds),
        window=min(float(spec.metrics_window_seconds), KEPT_SECONDS),
        stabilization=float(spec.stabilization_window_seconds),
        down_interval=float(spec.scale_down.interval_seconds),
        down_share=spec.scale_down.max_percent / 100,
        excluded=tuple(
            ExcludedPeriod(each.schedule, float(each.duration_seconds), each.time_zone)
            for each in spec.excluded_periods
            if not fault_of(each.schedule, each.time_zone)
        ),
    )


def past_of(status: AutoscalingStatus | None) -> Past:
    """Return what an earlier process of the operator left in the status."""
    if status is None:
        return Past()
    scale, learned = status.last_scale or LastScale(), read_memory(status.memory)
    return Past(
        target=status.target or 0,
        scaled_at=_seconds(scale.scale_time),
        scaled_from=scale.from_,
        scaled_reason=scale.reason,
        scaled_message=scale.message,
        capacity_before=learned.scaled_rows_per_second,
        capacity_with=learned.scaled_executors or scale.from_,
        capacity_busy=learned.scaled_busy,
        packing=min(1.0, learned.usable_share) if learned.usable_share > 0 else 1.0,
        packed_with=max(0, learned.executors),
        held_at=_seconds(learned.ineffective_time),
        held=learned.ineffective_executors,
        held_from=learned.ineffective_from,
        held_before=learned.ineffective_rows_per_second_before,
        held_after=learned.ineffective_rows_per_second_after,
        held_arriving=learned.ineffective_rows_per_second_arriving,
        held_times=learned.ineffective_times,
        tasks_at_once=learned.tasks_at_once,
        large=LargeBatches(learned.rows_per_second_per_executor, learned.rows_per_batch, learned.shares),
        version=learned.version,
    )


def _seconds(time: datetime.datetime | None) -> float:
    return time.timestamp() if time is not None else 0.0


def basis_of(app: StreamingApp) -> AutoscalingBasis | None:
    """Return what the autoscaler goes by, with an executor.instances that it does not obey; None if it is not Active.

    Whoever changes the mode or the bounds has seen to the number of executors: what the spec says then is no more
    ignored than the number that it said at first.
    """
    spec, known = app.spec.autoscaling, app.status.autoscaling
    if spec is None or not is_autoscaled(app):
        return None
    asked = AutoscalingBasis(
        instances=app.spec.executor.instances, min_executors=spec.min_executors, max_executors=spec.max_executors
    )
    before = known.basis if known is not None and known.mode == spec.mode.value else None
    if known is None or known.target is None or before is None:
        return asked  # nothing was decided yet: it is obeyed
    if (before.min_executors, before.max_executors) != (asked.min_executors, asked.max_executors):
        return asked
    ignored = asked.instances if asked.instances != before.instances else None
    return msgspec.structs.replace(before, ignored=ignored)
