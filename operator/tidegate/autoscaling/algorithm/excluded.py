"""Excluded periods, by cron and duration. Pure."""

from __future__ import annotations

from tidegate.api.values.times import Schedule, previous_time
from tidegate.autoscaling.algorithm.settings import ExcludedPeriod


def excluded_until(periods: tuple[ExcludedPeriod, ...], now: float) -> float:
    """Return when the period ends in which ``now`` lies, in seconds since the epoch; 0 if it lies in none.

    Args:
        periods: those that are excluded. Periods that overlap or touch are one after the other.
        now: seconds since the epoch.

    Raises:
        ScheduleError: no time follows from a schedule.
    """
    begins = [(previous_time(Schedule(period.schedule, period.time_zone), now), period) for period in periods]
    ends = [begin + period.seconds for begin, period in begins if begin is not None]
    return max((end for end in ends if now < end), default=0.0)
