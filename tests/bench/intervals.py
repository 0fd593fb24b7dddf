"""Medians with how sure they are, and percentiles. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

COVERAGE = 0.95


@dataclass(frozen=True)
class Median:
    """A median, and between what the true one lies with a probability of at least 95 %."""

    value: float
    low: float
    high: float


def median(values: Sequence[float]) -> Median:
    """Return the median of independent measurements; the interval needs nothing to be known of their distribution.

    The true median is below the k-th lowest of n with the probability that fewer than k of n coins show heads. Of fewer
    than six values no interval is that sure: it goes from the lowest to the highest then.
    """
    ordered, number = sorted(values), len(values)
    left = 0
    while 2 * left + 2 < number and _below(left + 2, number) <= (1 - COVERAGE) / 2:
        left += 1
    return Median(statistics.median(ordered), ordered[left], ordered[number - 1 - left])


def _below(rank: int, number: int) -> float:
    """Return the probability that fewer than ``rank`` of ``number`` coins show heads."""
    return sum(math.comb(number, heads) for heads in range(rank)) / (1 << number)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the lowest value that so many percent of all are not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
