"""``status.autoscaling``. No I/O."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field


class LastScale(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last change of the autoscaler's target."""

    scale_time: datetime | None = None
    from_: int = field(default=0, name="from")
    to: int = 0
    reason: str = ""
    message: str = ""


class AutoscalingMetrics(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The numbers that were used; absent ones are not known."""

    executors: int = 0
    arriving_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    rows_per_second_per_executor: float = 0.0
    rows_per_batch: float = 0.0
    utilization_percent: int = 0
    busy_percent: int = 0
    usable_percent: int = 0
    lag_rows: int | None = None
    backlog_rows: int = 0
    idle_executors: int | None = None
    needed_executors: float = 0.0
    upper_bound: int = 0
    window_seconds: int = 0


class AutoscalingBasis(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the spec said when the autoscaler became Active or got other bounds.

    ``ignored`` is an ``executor.instances`` that came later and has no effect; None if there is none.
    """

    instances: int
    min_executors: int
    max_executors: int
    ignored: int | None = None


class AutoscalingStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the autoscaler found and decided; ``target`` is the number in effect, which only mode Active has."""

    mode: str = ""
    target: int | None = None
    recommended: int | None = None
    reason: str = ""
    message: str = ""
    evaluation_time: datetime | None = None
    last_scale: LastScale | None = None
    memory: str = ""
    metrics: AutoscalingMetrics | None = None
    basis: AutoscalingBasis | None = None
