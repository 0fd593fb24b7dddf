"""When something is due that recurs: by cron or by an interval, in UTC. Pure; the same questions have the same answers.

Both are grids on the clock, not distances from the last time: so a time is known without remembering anything, its name
is the same for whoever works it out, and what was late does not move what comes after.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
from collections.abc import Iterator

from cronsim import CronSim, CronSimError

from tidegate.model.duration import seconds_of

MINUTE = 60
_ANY_TIME = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


class ScheduleError(Exception):
    """No time follows from it; the message says why, and what to write instead."""


def previous_time(schedule: str, every: str, key: str, now: float) -> float | None:
    """Return the last time that is not later than ``now``, None if there was none for decades.

    Args:
        schedule: five fields as in cron; empty if ``every`` is given.
        every: an interval, such as 6h.
        key: whose intervals they are: each begins at a minute of its own, so that not all are due at once.
        now: seconds since the epoch.

    Raises:
        ScheduleError: no time follows from the schedule.
    """
    minute = _minute(now)
    if every:
        return _grid(every, key, minute)
    return _cron(schedule, minute, reverse=True)


def next_time(schedule: str, every: str, key: str, now: float) -> float | None:
    """Return the first time that is later than ``now``, None if there will be none for decades; as above."""
    minute = _minute(now)
    if every:
        return _grid(every, key, minute) + seconds_of(every)
    return _cron(schedule, minute, reverse=False)


@functools.lru_cache(4096)
def fault_of(schedule: str) -> str:
    """Return why no time follows from a schedule, and what to write instead; empty if times do."""
    if len(schedule.split()) != 5:
        return f"{schedule!r} has not five fields: minute, hour, day of month, month, day of week; such as 0 8 * * 1-5"
    try:
        times = CronSim(schedule, _ANY_TIME)
    except CronSimError as error:
        if _names_fields(schedule):
            return (
                f"{schedule!r} never comes: no month that it names has such a day. Name days that one of them has, "
                "such as 28"
            )
        return f"{schedule!r} is no schedule ({error}). A range begins with the smaller one, such as 8-17 or MON-FRI"
    return "" if next(times, None) is not None else f"{schedule!r} never comes. Name days that come"


def _names_fields(schedule: str) -> bool:
    """Return whether each field alone can be read; then it is the day and the month that do not go together."""
    minute, hour, day, month, weekday = schedule.split()
    try:
        for alone in (f"{minute} {hour} * * {weekday}", f"* * {day} * *", f"* * * {month} *"):
            CronSim(alone, _ANY_TIME)
    except CronSimError:
        return False
    return True


def _minute(now: float) -> int:
    return int(now // MINUTE) * MINUTE


def _grid(every: str, key: str, minute: int) -> float:
    interval = int(seconds_of(every))
    offset = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) % interval // MINUTE * MINUTE
    return float((minute - offset) // interval * interval + offset)


@functools.lru_cache(4096)
def _cron(schedule: str, minute: int, *, reverse: bool) -> float | None:
    fault = fault_of(schedule)
    if fault:
        raise ScheduleError(fault)
    # The library looks beyond the time that it is given, so backwards it is given the next minute.
    start = datetime.datetime.fromtimestamp(minute + (MINUTE if reverse else 0), datetime.UTC)
    times: Iterator[datetime.datetime] = CronSim(schedule, start, reverse=reverse)
    found = next(times, None)
    return found.timestamp() if found is not None else None
