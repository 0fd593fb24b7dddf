"""The bounds of the number of executors, and what sets them. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidegate.autoscaling.algorithm.measured import Measured
from tidegate.autoscaling.algorithm.settings import TOLERANCE, Settings
from tidegate.autoscaling.algorithm.situation import Situation
from tidegate_spark.contract.reasons import Reason

LIMITS = (
    Reason.AT_MAXIMUM,
    Reason.PARTITIONS_CEILING,
    Reason.EXECUTORS_IDLE,
    Reason.BATCHES_LIMITED,
    Reason.QUOTA_REACHED,
    Reason.EXECUTORS_MISSING,
    Reason.INEFFECTIVE_SCALING,
)
"""What keeps more executors away."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """From and to how many executors; ``limit`` is what sets the upper one."""

    low: int
    high: int
    limit: Reason


def partitions_ceiling(measured: Measured, cores: int, seen: int = 0) -> int | None:
    """Return with how many executors each task of a stage has a core of its own; None if nobody knows.

    Reading has a task for each partition of the sources, and state one for each of its partitions; they are stages one
    after the other, so the one with more tasks counts. Where more tasks were ``seen`` at a time than that, something
    else decides how many there are: a source that divides partitions (Kafka's minPartitions), or a shuffle.
    """
    tasks = max(measured.source_partitions, measured.state_partitions)
    if measured.source_partitions < 0 or tasks <= 0 or seen > tasks:
        return None
    return max(1, math.ceil(tasks / cores))


def tasks_beyond(measured: Measured) -> int:
    """Return how many tasks ran at a time, on the average, if that is more than there are partitions; else 0."""
    tasks = max(measured.source_partitions, measured.state_partitions)
    return math.ceil(measured.tasks_at_once) if measured.tasks_at_once > tasks * (1 + TOLERANCE) > 0 else 0


def state_ceiling(measured: Measured, cores: int) -> int | None:
    """Return with how many executors each partition of the state has a core of its own; None without state."""
    return max(1, math.ceil(measured.state_partitions / cores)) if measured.state_partitions > 0 else None


def find_bounds(settings: Settings, situation: Situation, current: int, held: int, seen: int) -> Bounds:
    """Return the bounds; what a person set goes before what was found.

    A person's maximum, partitions, and executors without which an application keeps up as well are reasons to have
    fewer; everything else is one not to have more.

    Args:
        settings: what a person asks for.
        situation: what is now.
        current: executors that were decided on.
        held: how many there are to be at most since more were of no use, 0 if that is not known.
        seen: tasks at a time, if there were more than partitions.
    """
    measured, quota = situation.measured, situation.quota
    found = [(settings.most, Reason.AT_MAXIMUM)]
    ceiling = partitions_ceiling(measured, situation.cores, seen) if measured is not None else None
    if ceiling is not None:
        found.append((ceiling, Reason.PARTITIONS_CEILING))
    if measured is not None and measured.saturated and measured.idle_executors > 0:
        found.append((current, Reason.EXECUTORS_IDLE))
    if measured is not None and measured.throttled:
        found.append((current, Reason.BATCHES_LIMITED))
    if quota is not None and not quota.unsure:
        found.append((max(quota.most, current), Reason.QUOTA_REACHED))
    if measured is not None and measured.executors < situation.wanted:
        found.append((current, Reason.EXECUTORS_MISSING))
    if held:
        found.append((held, Reason.INEFFECTIVE_SCALING))
    high, limit = min(found, key=lambda each: each[0])
    return Bounds(settings.fewest, max(settings.fewest, high), limit)
