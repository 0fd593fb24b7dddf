"""Due times: by cron, by interval, or after a pause. Pure.

Cron and interval are grids on the clock, not distances from the last time: no memory is needed, every process computes
the same times, and a late one does not shift the next.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass

from cronsim import CronSim, CronSimError

from tidegate.api.values import messages

MINUTE = 60
_LONGEST = 100
_AROUND_A_CHANGE = datetime.timedelta(hours=3)
"""More than clocks are put back anywhere (two hours in Antarctica/Troll)."""
_ANY_TIME = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


class ScheduleError(Exception):
    """No time follows from it; the message says why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times by cron: five fields, read in a time zone of the IANA database (UTC if none is named)."""

    cron: str
    time_zone: str = ""

    def __str__(self) -> str:
        return f"{self.cron} {self.time_zone}".strip()


@dataclass(frozen=True, slots=True)
class Interval:
    """Times that are ``seconds`` (whole minutes) apart; ``key`` sets the first one, so that not all coincide."""

    seconds: int
    key: str

    def __str__(self) -> str:
        return messages.interval(self.seconds)


def previous_time(times: Schedule | Interval, now: float) -> float | None:
    """Return the last time that is not later than ``now``, None if there was none for decades.

    Args:
        times: the schedule or interval.
        now: seconds since the epoch.

    Raises:
        ScheduleError: no time follows from the schedule.
    """
    minute = _minute(now)
    if isinstance(times, Interval):
        return _grid(times, minute)
    return _cron(times, minute, reverse=True)


def next_time(times: Schedule | Interval, now: float) -> float | None:
    """Return the first time that is later than ``now``, None if there will be none for decades; as above."""
    minute = _minute(now)
    if isinstance(times, Interval):
        return _grid(times, minute) + times.seconds
    return _cron(times, minute, reverse=False)


@functools.lru_cache(4096)
def fault_of(schedule: str, time_zone: str = "") -> str:
    """Return why no time follows from a schedule, and what to write instead; empty if times do."""
    if len(schedule) > _LONGEST or len(time_zone) > _LONGEST:
        # The CRD says so, too; an object may be older than that.
        return messages.schedule_too_long(_LONGEST)
    if _zone(time_zone) is None:
        return messages.unknown_time_zone(time_zone)
    if len(schedule.split()) != 5:
        return messages.not_five_fields(schedule)
    try:
        times = CronSim(schedule, _ANY_TIME)
    except CronSimError as error:
        if _names_fields(schedule):
            return messages.day_never_occurs(schedule)
        return messages.no_schedule(schedule, error)
    return "" if next(times, None) is not None else messages.never_occurs(schedule)


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


@functools.lru_cache(128)
def _zone(name: str) -> datetime.tzinfo | None:
    """Return a time zone, None if nobody knows it. Reads the database of time zones."""
    if not name:
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _grid(interval: Interval, minute: int) -> float:
    offset = int(hashlib.sha256(interval.key.encode()).hexdigest()[:8], 16) % interval.seconds // MINUTE * MINUTE
    return float((minute - offset) // interval.seconds * interval.seconds + offset)


@functools.lru_cache(4096)
def _cron(schedule: Schedule, minute: int, *, reverse: bool) -> float | None:
    fault = fault_of(schedule.cron, schedule.time_zone)
    if fault:
        raise ScheduleError(fault)
    zone = _zone(schedule.time_zone)
    if _goes_by_all_hours(schedule.cron):
        return _by_clock(schedule.cron, minute, zone, reverse=reverse)
    # The library looks beyond the time that it is given, so backwards it is given the next minute.
    start = datetime.datetime.fromtimestamp(minute + (MINUTE if reverse else 0), zone)
    if reverse:
        start += _repeated(start)
    times: Iterator[datetime.datetime] = CronSim(schedule.cron, start, reverse=reverse)
    found = (each.timestamp() for each in times)
    return next((each for each in found if (each <= minute if reverse else each > minute)), None)


def _goes_by_all_hours(cron: str) -> bool:
    """Return whether minutes or hours start with a star: such times come as often as clocks show them, as in cron."""
    minutes, hours, *_ = cron.split()
    return minutes.startswith("*") or hours.startswith("*")


def _by_clock(cron: str, minute: int, zone: datetime.tzinfo | None, *, reverse: bool) -> float | None:
    """Return the last or next of such times; the library is asked for what clocks show, without a zone.

    With one, it steps by hours and lands between two of its times where clocks are changed by half an hour (Lord Howe).
    """
    shown = datetime.datetime.fromtimestamp(minute, zone).replace(tzinfo=None)
    sign = -1 if reverse else 1
    # Clocks that are put back show an earlier time later: so times on both sides of the change count.
    around = _AROUND_A_CHANGE if _changes_near(minute, zone) else datetime.timedelta()
    start = shown - sign * around + (datetime.timedelta(minutes=1) if reverse else datetime.timedelta())
    found: list[float] = []
    for clock in CronSim(cron, start, reverse=reverse):
        found += [each for each in _moments(clock, zone) if (each <= minute if reverse else each > minute)]
        if found and sign * (clock - shown) >= around:
            break
    return (max if reverse else min)(found, default=None)


def _changes_near(minute: int, zone: datetime.tzinfo | None) -> bool:
    around = _AROUND_A_CHANGE.total_seconds()
    before, after = (datetime.datetime.fromtimestamp(minute + far, zone) for far in (-around, around))
    return before.utcoffset() != after.utcoffset()


def _moments(clock: datetime.datetime, zone: datetime.tzinfo | None) -> set[float]:
    """Return when clocks show this: once, twice where they are put back, never where they are put forward."""
    moments = {clock.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)}
    return {
        each for each in moments if datetime.datetime.fromtimestamp(each, zone).replace(tzinfo=None, fold=0) == clock
    }


def _repeated(at: datetime.datetime) -> datetime.timedelta:
    """Return how much the clocks repeat, if they do so at this time; else nothing.

    The library goes by what clocks show. At 2:10 for the second time, 2:30 is still to come for it, which was the time
    of the schedule half an hour before.
    """
    first, second = at.replace(fold=0).utcoffset(), at.utcoffset()
    assert first is not None
    assert second is not None
    return first - second if at.fold else datetime.timedelta()


def growing_pause(attempts: int, first: float, longest: float) -> float:
    """Return the seconds to wait after so many attempts: none, then ``first``, doubling up to ``longest``."""
    return min(first * 2.0 ** (min(attempts, 16) - 1), longest) if attempts > 0 else 0.0
