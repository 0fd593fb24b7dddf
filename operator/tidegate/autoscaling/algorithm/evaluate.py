"""evaluate(settings, situation, past) -> Evaluation: how many executors, and why. Pure: no clock, no Kubernetes.

The need is what arrives divided by what one executor does at the target utilization, plus the backlog divided by what
it does in the time for catching up. Executors are added at once after the stabilization window, and removed step by
step when fewer were enough for a whole interval.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from tidegate.autoscaling.algorithm.bounds import Bounds, find_bounds, tasks_beyond
from tidegate.autoscaling.algorithm.effect import held_to, judge, to_be_judged, worth_up_to
from tidegate.autoscaling.algorithm.large_batches import remember, usable_rate
from tidegate.autoscaling.algorithm.measured import Measured, settled_after
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.settings import ROUNDING, TOLERANCE, UNSEEN, Mode, Settings
from tidegate.autoscaling.algorithm.situation import Obstacle, Situation
from tidegate_spark.contract.reasons import Reason

_NO_RATE = 1e-6
_LEAST_PACKING = 0.05
"""Less than this is a batch that hung, and no property of the program."""
_WHY_NOT = {
    Obstacle.REPARTITIONING: Reason.UPGRADE_UNDER_WAY,
    Obstacle.UPGRADING: Reason.UPGRADE_UNDER_WAY,
    Obstacle.CONTINUOUS: Reason.CONTINUOUS_TRIGGER,
    Obstacle.REAL_TIME: Reason.REAL_TIME_TRIGGER,
}
_GRAINS = 100
"""Into how many parts the interval is divided of which the highest need is remembered."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result: ``recommended`` executors, ``due`` if they are to be had now."""

    step: Reason
    current: int
    recommended: int
    due: bool
    past: Past
    needed: float = 0.0
    bounds: Bounds | None = None
    wait: float | None = None
    """Seconds until it would be due if the measurements stay as they are."""
    soon: float = 0.0
    """The need for what has arrived lately, if that is more."""


def evaluate(settings: Settings, situation: Situation, past: Past) -> Evaluation:
    """Return how many executors there should be.

    Args:
        settings: what a person asks for.
        situation: what is now, with the measurements.
        past: what the evaluation before left.
    """
    past = _of_version(past, situation)
    active = settings.mode is Mode.ACTIVE
    # An edit may ask for another number and for the autoscaler at once: the driver does not know of it yet.
    current = (past.target or situation.asked or situation.wanted) if active else situation.wanted
    past = dataclasses.replace(past, target=current if active else 0)
    within = min(max(current, settings.fewest), settings.most)
    if within != current and settings.mode is Mode.ACTIVE:
        # A person's bounds count at any time, whatever else keeps the number as it is.
        return _take(Evaluation(Reason.OUT_OF_BOUNDS, current, within, True, past), situation)
    # The need is learned also while nothing may be changed.
    if situation.obstacle is not None:
        idle = dataclasses.replace(past, above_since=0.0, below_since=0.0)
        why = _WHY_NOT.get(situation.obstacle, Reason.NOT_RUNNING)
        return Evaluation(why, current, current, False, idle)
    measured = situation.measured
    if measured is not None:
        past = _learn(past, measured)
    needed = need(settings, measured, past) if measured is not None else None
    if measured is not None and needed is not None:
        past = judge(_remember(past, needed, settings, situation.steady), measured, needed, current, situation.now)
    result = _decide(settings, situation, past, current, needed)
    if result.recommended != current and situation.excluded_until > situation.now:
        wait = situation.excluded_until - situation.now
        return dataclasses.replace(result, step=Reason.EXCLUDED_PERIOD, due=False, wait=wait)
    return _take(result, situation) if result.due and settings.mode is Mode.ACTIVE else result


def need(settings: Settings, measured: Measured, past: Past) -> float | None:
    """Return how many executors are needed, in fractions; None if nobody can know."""
    if measured.arriving <= 0 and measured.backlog <= 0:
        return None if measured.uncounted else 0.0
    if measured.rate < _NO_RATE:
        return None
    rate = usable_rate(past.large, measured)
    busy = measured.arriving / (rate * settings.utilization) + measured.backlog / (rate * settings.catch_up)
    packing = max(past.packing, _LEAST_PACKING)
    needed = busy / packing
    return busy / (1 - _drag(past) * busy) if needed < past.packed_with else needed


def usable_share(past: Past, executors: float) -> float:
    """Return the share of their time that batches can use of so many executors.

    The fewer there are, the more: what batches do not use is the time of their slowest task and of planning, which is
    as long with few of them. Of more executors than were seen it is taken to stay the same: each step measures again.
    """
    if executors >= past.packed_with:
        return max(past.packing, _LEAST_PACKING)
    return 1 / (1 + _drag(past) * executors)


def _drag(past: Past) -> float:
    """Return by how much an executor's work, as a share, takes longer for each executor that there is."""
    return (1 / max(past.packing, _LEAST_PACKING) - 1) / past.packed_with


def _decide(settings: Settings, situation: Situation, past: Past, current: int, needed: float | None) -> Evaluation:
    bounds = find_bounds(settings, situation, current, held_to(past, current, situation.now), past.tasks_at_once)

    def say(step: Reason, recommended: int, due: bool, wait: float | None = None) -> Evaluation:
        after = dataclasses.replace(
            past,
            above_since=past.above_since if step in (Reason.SCALE_UP, Reason.SCALE_UP_SOON) else 0.0,
            below_since=past.below_since if step in (Reason.SCALE_DOWN, Reason.SCALE_DOWN_SOON) else 0.0,
        )
        return Evaluation(step, current, recommended, due, after, needed or 0.0, bounds, wait, soon)

    soon = _needed_soon(settings, situation, past, needed) if needed is not None else 0.0
    within = min(max(current, settings.fewest), settings.most)
    if within != current:
        return say(Reason.OUT_OF_BOUNDS, within, True)
    if needed is None:
        return say(_why_nothing_is_known(settings, situation), current, False)
    if needed > current * (1 + TOLERANCE):
        more = min(math.ceil(soon - ROUNDING), bounds.high)
        most = worth_up_to(situation.measured) if situation.measured is not None else None
        worth = more if most is None else min(more, most)
        if worth > current:
            past = dataclasses.replace(past, above_since=past.above_since or situation.steady)
            wait = past.above_since + settings.stabilization - situation.steady
            if situation.measured is not None and situation.measured.saturated:
                wait = 0.0  # no short peak: it has fallen behind while it was measured
            return say(Reason.SCALE_UP, worth, True) if wait <= 0 else say(Reason.SCALE_UP_SOON, worth, False, wait)
        if bounds.high > current * (1 - TOLERANCE):
            return say(Reason.INEFFECTIVE_SCALING if more > current else bounds.limit, current, False)
        # Those beyond the partitions have no task, however much is needed.
    enough = enough_executors(past, current, bounds)
    # The tolerance is for the need, which is never exact: a step may be as small as a person wants it.
    if enough > current * (1 - TOLERANCE):
        return say(Reason.STEADY, current, False)
    fewer = max(enough, _lowest_after_step(settings, current))
    past = dataclasses.replace(past, below_since=past.below_since or situation.steady)
    # The lower load is known once no measurement averages before and after: one step goes there, and not two.
    since = max(past.peaks_since, past.changed_at)
    wait = max(since + settings.down_interval, past.below_since + settings.window) - situation.steady
    return say(Reason.SCALE_DOWN, fewer, True) if wait <= 0 else say(Reason.SCALE_DOWN_SOON, fewer, False, wait)


def _why_nothing_is_known(settings: Settings, situation: Situation) -> Reason:
    if situation.measured is not None:
        return Reason.ROWS_UNKNOWN if situation.measured.uncounted else Reason.RATE_UNKNOWN
    short = situation.lasting_shortage
    if short is None:
        return Reason.MEASURING
    # Of executors that are not there, or come and go, there will never be measurements; of few that stay, with batches.
    stays = short.running > 0 and situation.same_for >= settled_after(settings.window)
    return Reason.MEASURING if stays else Reason.EXECUTORS_MISSING


def _needed_soon(settings: Settings, situation: Situation, past: Past, needed: float) -> float:
    """Return the need for what has arrived lately, if that is more: while the load grows, the mean lags behind."""
    measured = situation.measured
    if measured is None or measured.arriving_lately <= measured.arriving:
        return needed
    lately = need(settings, dataclasses.replace(measured, arriving=measured.arriving_lately), past)
    return max(needed, lately or 0.0)


def enough_executors(past: Past, current: int, bounds: Bounds) -> int:
    """Return how many would have been enough all the while, within the bounds."""
    peak = past.peaks[0][1] if past.peaks else float(current)
    # With room to spare: what is taken away now must not be needed again at the next small increase.
    return max(min(math.ceil(peak * (1 + TOLERANCE) - ROUNDING), bounds.high), bounds.low)


def _lowest_after_step(settings: Settings, current: int) -> int:
    """Return how many one step down has to leave: at least one of them may always go."""
    return min(math.ceil(current * (1 - settings.down_share) - ROUNDING), current - 1)


def _take(result: Evaluation, situation: Situation) -> Evaluation:
    """Return the evaluation with what follows for the next ones when it is acted upon."""
    measured = situation.measured if result.step is Reason.SCALE_UP else None
    past = dataclasses.replace(
        to_be_judged(result.past, measured, result.current),
        target=result.recommended,
        scaled_at=situation.now,
        changed_at=situation.steady,
        scaled_from=result.current,
        above_since=0.0,
        below_since=0.0,
    )
    return dataclasses.replace(result, past=past)


def _of_version(past: Past, situation: Situation) -> Past:
    """Return the past without what was learned, and is to be judged, of another version."""
    if past.version == situation.version:
        return past
    return Past(
        target=past.target,
        scaled_at=past.scaled_at,
        scaled_from=past.scaled_from,
        scaled_reason=past.scaled_reason,
        scaled_message=past.scaled_message,
        version=situation.version,
        changed_at=past.changed_at,
        measured_at=past.measured_at,
    )


def _learn(past: Past, measured: Measured) -> Past:
    """Return the past with what is known of the program.

    How many tasks it has, what an executor does in large batches, and what of their time executors are used: of the
    latter as it is, or at least as it was seen.
    """
    at_once = max(past.tasks_at_once, tasks_beyond(measured))
    past = dataclasses.replace(past, tasks_at_once=at_once, large=remember(past.large, measured))
    if measured.rate <= 0:
        return past
    if not measured.is_packed and measured.packing <= usable_share(past, measured.executors):
        return past
    return dataclasses.replace(past, packing=measured.packing, packed_with=measured.executors)


def _remember(past: Past, needed: float, settings: Settings, now: float) -> Past:
    """Return the past with one more need, ``now`` by the monotonic clock.

    A later one that is higher makes those before it count for nothing.
    """
    interval, unseen = settings.down_interval, now - past.measured_at
    is_new = past.peaks_since <= 0 or unseen > max(interval / 2, settings.window, UNSEEN)
    if is_new:
        return dataclasses.replace(past, peaks=((now, needed),), peaks_since=now, measured_at=now)
    later = [(at, peak) for at, peak in past.peaks if peak > needed and now - interval <= at]
    # The one before is higher: so soon after it, it stands for this one, too.
    if not later or now - later[-1][0] >= interval / _GRAINS:
        later.append((now, needed))
    return dataclasses.replace(past, peaks=tuple(later), measured_at=now)
