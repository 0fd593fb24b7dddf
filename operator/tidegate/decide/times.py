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


class ScheduleError(Exception):
    """No time follows from it; the message says why."""


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


def _minute(now: float) -> int:
    return int(now // MINUTE) * MINUTE


def _grid(every: str, key: str, minute: int) -> float:
    interval = int(seconds_of(every))
    offset = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) % interval // MINUTE * MINUTE
    return float((minute - offset) // interval * interval + offset)


@functools.lru_cache(4096)
def _cron(schedule: str, minute: int, *, reverse: bool) -> float | None:
    # The library looks beyond the time that it is given, so backwards it is given the next minute.
    start = datetime.datetime.fromtimestamp(minute + (MINUTE if reverse else 0), datetime.UTC)
    if len(schedule.split()) != 5:
        raise ScheduleError(f"{schedule!r} has not five fields: minute, hour, day of month, month, day of week")
    try:
        times: Iterator[datetime.datetime] = CronSim(schedule, start, reverse=reverse)
    except CronSimError as error:
        raise ScheduleError(f"{schedule!r} is no schedule: {error}") from error
    found = next(times, None)
    return found.timestamp() if found is not None else None
