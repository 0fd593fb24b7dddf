"""Whether adding executors helped, and for how long none are added if it did not. Pure.

For an application that falls behind, its rows per second show it. For one that keeps up those equal what arrives, so
the duration of its batches shows it: a hot key or a slow sink leaves that unchanged.
"""

from __future__ import annotations

import dataclasses
import math

from tidegate.autoscaling.algorithm.measured import FULL, LONG, Measured
from tidegate.autoscaling.algorithm.past import SATURATED, Past
from tidegate.autoscaling.algorithm.settings import ROUNDING, TOLERANCE

LITTLE_GAIN = 0.2
"""Share of the gain that was expected of more executors, below which they were of no use."""
HELD_SECONDS = 3600.0
"""For how long no more are added after that; then it is tried again, since the cause may be gone."""
_HELD_MOST = 8 * HELD_SECONDS
"""Each further time in a row it is twice as long, up to this."""
_LARGE_STEP = 1.2
"""By so much more executors it shows in the length of batches, which vary by themselves, whether they are of use."""
_AS_MUCH = 1.25
"""Up to so many times the rows are as many."""


def to_be_judged(past: Past, measured: Measured | None, current: int) -> Past:
    """Return the past with what the application does before a step.

    Args:
        past: what the evaluation before left.
        measured: what it does, None if the step is not one that has to bring anything.
        current: executors before the step.
    """
    if measured is None or not measured.in_batches:
        return dataclasses.replace(past, capacity_before=0.0)
    if measured.saturated:
        return dataclasses.replace(
            past, capacity_before=measured.processed, capacity_with=current, capacity_busy=SATURATED
        )
    if measured.busy >= FULL:
        # One batch after the other, and nothing waits for long: what is done in a second is what arrives.
        return dataclasses.replace(past, capacity_before=0.0)
    if past.capacity_before > 0 and past.capacity_busy < SATURATED and current < past.capacity_with * _LARGE_STEP:
        return past  # the last step was too small by itself; both together are not
    return dataclasses.replace(
        past, capacity_before=measured.in_batches, capacity_with=current, capacity_busy=measured.busy
    )


def judge(past: Past, measured: Measured, needed: float, current: int, now: float) -> Past:
    """Return what is learned of the last step up, if it is still not enough: whether it helped at all.

    Args:
        past: what the evaluation before left.
        measured: what was seen since the step.
        needed: executors, in fractions.
        current: executors that were decided on.
        now: seconds since the epoch.
    """
    past = _with_more_to_do(past, measured)
    fits = measured.executors == current == past.target
    if not fits or past.capacity_before <= 0 or not 0 < past.capacity_with < current:
        return past
    if past.capacity_busy >= SATURATED:
        return _judge_behind(past, measured, needed, current, now)
    return _judge_beside(past, measured, needed, current, now)


def held_to(past: Past, current: int, now: float) -> int:
    """Return beyond how many executors more were of no use, 0 if that is not known, or was long ago.

    An application that keeps up as well with those of before the step can do with them.
    """
    # On either side, because a clock may have been set back.
    if not past.held or abs(now - past.held_at) >= held_seconds(past):
        return 0
    return past.held_from if past.held_arriving else max(past.held, current)


def held_seconds(past: Past) -> float:
    """Return for how long no more are added after the last step was of no use."""
    return min(HELD_SECONDS * 2.0 ** (max(1, past.held_times) - 1), _HELD_MOST)


def worth_up_to(measured: Measured) -> int | None:
    """Return up to how many executors each could, at best, make batches shorter by more than is called little gain.

    However many there are, they only shorten what executors work at. The rest of a batch stays as long: the driver's
    part, and what passes while all wait for the longest task (Amdahl, AFIPS 1967). Where rows wait, half of that gain
    is enough; how much it is shows afterwards.

    Returns:
        how many; None if batches have no such rest, or nobody knows.
    """
    work, little = measured.at_work, LITTLE_GAIN / 2 if measured.saturated else LITTLE_GAIN
    if not 0 < work < 1:
        return None
    return math.floor(measured.executors * work / (1 - work) * (1 / little - 1) + ROUNDING)


def _with_more_to_do(past: Past, measured: Measured) -> Past:
    """Return the past without what was seen, once it says nothing any more.

    That is when an application that kept up has to do more, or one that fell behind does clearly more than it could.
    """
    if past.held_arriving:
        gone = measured.saturated or measured.arriving > past.held_arriving * _AS_MUCH
    else:
        gone = bool(past.held) and measured.processed > past.held_after * _AS_MUCH
    return _without_held(past) if gone else past


def _judge_behind(past: Past, measured: Measured, needed: float, current: int, now: float) -> Past:
    """Judge a step of an application that had fallen behind."""
    if not measured.saturated:
        if measured.busy >= FULL and measured.batch_seconds >= LONG:
            return past  # long batches that follow one another may still get longer each time
        # It keeps up: the step was of use. When rows get dearer one day, what it did before is no measure of that.
        return dataclasses.replace(_without_held(past), capacity_before=0.0)
    if abs(now - past.scaled_at) > HELD_SECONDS:
        return dataclasses.replace(past, capacity_before=0.0)
    if needed <= current * (1 + TOLERANCE):
        return past
    if _has_gained(past, measured.processed, current):
        return _without_held(past)
    return _hold(past, measured.processed, 0.0, current, now)


def _judge_beside(past: Past, measured: Measured, needed: float, current: int, now: float) -> Past:
    """Judge a step of an application that kept up, with pauses between its batches."""
    before = past.capacity_before * past.capacity_busy
    as_much = before / _AS_MUCH <= measured.processed <= before * _AS_MUCH
    if needed <= current * (1 + TOLERANCE) or measured.busy >= FULL or not as_much:
        return dataclasses.replace(past, capacity_before=0.0)
    if current < past.capacity_with * _LARGE_STEP:
        return past
    if _has_gained(past, measured.in_batches, current):
        return dataclasses.replace(_without_held(past), capacity_before=0.0)
    return _hold(past, measured.in_batches, measured.arriving, current, now)


def _has_gained(past: Past, capacity: float, current: int) -> bool:
    expected = past.capacity_before * (current / past.capacity_with - 1)
    return capacity - past.capacity_before >= LITTLE_GAIN * expected


def _hold(past: Past, capacity: float, arriving: float, current: int, now: float) -> Past:
    return dataclasses.replace(
        past,
        held_at=now,
        held=current,
        held_from=past.capacity_with,
        held_before=past.capacity_before,
        held_after=capacity,
        held_arriving=arriving,
        # Long after the last time it starts over.
        held_times=1 + (past.held_times if abs(now - past.held_at) < 2 * held_seconds(past) else 0),
        capacity_before=0.0,
    )


def _without_held(past: Past) -> Past:
    return dataclasses.replace(past, held=0, held_arriving=0.0, held_times=0)
