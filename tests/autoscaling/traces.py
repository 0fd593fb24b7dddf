"""Traces of arrivals: rows per second at each moment. No chance; the flights come from a file."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from devcluster.demo.flights_data import read_flights

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
STEP = 5.0
"""Seconds for which the rate of a trace is taken to be constant."""


@dataclass(frozen=True)
class Trace:
    """So many rows have arrived at the end of each step."""

    name: str
    seconds: float
    arrived: tuple[float, ...]
    begins: float = 0.0
    """At which hour of a day, in UTC."""

    def until(self, at: float) -> float:
        """Return how many rows have arrived up to a time; rows do not arrive in whole numbers here."""
        place = min(max(0.0, at), self.seconds) / STEP
        whole = min(int(place), len(self.arrived) - 2)
        return self.arrived[whole] + (place - whole) * (self.arrived[whole + 1] - self.arrived[whole])

    def time_of(self, rows: float) -> float:
        """Return when so many rows had arrived."""
        index = min(max(1, bisect_right(self.arrived, rows)), len(self.arrived) - 1)
        before, after = self.arrived[index - 1], self.arrived[index]
        share = (rows - before) / (after - before) if after > before else 0.0
        return (index - 1 + min(1.0, share)) * STEP

    def rate(self, at: float) -> float:
        """Return the rows per second at a time."""
        return (self.until(at + STEP) - self.until(at)) / STEP


def make(name: str, seconds: float, rate: Callable[[float], float], begins: float = 0.0) -> Trace:
    """Return the trace of a rate."""
    steps = (rate(STEP * (number + 0.5)) * STEP for number in range(math.ceil(seconds / STEP)))
    return Trace(name, seconds, (0.0, *accumulate(steps)), begins)


def diurnal() -> Trace:
    """Return a day: little at four in the morning, ten times as much at four in the afternoon."""
    return make("diurnal", DAY, lambda t: 550 - 450 * math.cos(2 * math.pi * (t / DAY - 4 / 24)))


def burst() -> Trace:
    """Return four hours of little with two bursts: ten minutes of ten times as much, and two minutes of it."""
    return make("burst", 4 * HOUR, lambda t: 1500 if 60 <= t / MINUTE < 70 or 150 <= t / MINUTE < 152 else 150)


def step() -> Trace:
    """Return a step up after an hour and down again two hours later."""
    return make("step", 5 * HOUR, lambda t: 1000 if 1 <= t / HOUR < 3 else 200)


@cache
def flights() -> Trace:
    """Return two days in July of flights that left New York, hour by hour: 30 an hour are 450 rows a second here."""
    per_hour = Counter(flight.left.replace(minute=0, second=0) for flight in read_flights())
    first = min(per_hour).replace(month=7, day=8, hour=4)
    # Hours in which nobody left are not in the file.
    named = {int((at - first).total_seconds() // HOUR): number for at, number in per_hour.items()}
    return make("flights", 2 * DAY, lambda t: 15.0 * named.get(int(t // HOUR), 0), begins=4.0)


TRACES: dict[str, Callable[[], Trace]] = {"diurnal": diurnal, "burst": burst, "step": step, "flights": flights}
