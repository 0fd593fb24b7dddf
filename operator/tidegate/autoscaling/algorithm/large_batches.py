"""Remembers the rate of large batches, and uses it when there are only small ones. Pure.

Each batch has a fixed cost: tasks start, Python starts, state commits. When there is little to read, a query without a
trigger interval spends nearly all its task time on it, and its rate says nothing: with fewer executors batches would be
rarer and larger.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.autoscaling.algorithm.measured import Measured

SMALL = 0.8
"""Share of the rows of the remembered batches below which others are small."""
ALIKE = 0.8
"""Share of all rows that has to be of the same queries: a rate is one of a mixture, and says nothing of another."""


@dataclass(frozen=True, slots=True)
class LargeBatches:
    """What an executor did in the largest batches that were seen; none were if ``rate`` is 0."""

    rate: float = 0.0
    """Rows per second of one executor."""
    rows: float = 0.0
    """Of one batch, on the average."""
    shares: tuple[float, ...] = ()
    """Of each query, in the order of their names, in those rows."""


NONE = LargeBatches()


def remember(known: LargeBatches, measured: Measured) -> LargeBatches:
    """Return what is to be remembered after one more measurement.

    The newest of about as large batches holds, also if they were slower: rows have got dearer. A higher rate holds
    whatever its batches: larger ones are no slower. What is measured while the application falls behind holds, too: it
    can do no more than that, whatever it could do before, and else it would be left with too few again and again.
    """
    if measured.rate <= 0:
        return known
    seen = LargeBatches(measured.rate, measured.rows_per_batch, measured.shares)
    if measured.saturated or known.rate <= 0:
        return seen
    if not _small(known, measured):
        # However often batches are a little smaller: what counts as large does not come down by that.
        return LargeBatches(seen.rate, max(seen.rows, known.rows), seen.shares)
    return seen if measured.rate > known.rate and _alike(known, measured) else known


def usable_rate(known: LargeBatches, measured: Measured) -> float:
    """Return what an executor can do: as it was measured, or as it did in large batches.

    Only where one batch follows the other. Of those that have pauses between them the trigger says how often the fixed
    part is paid, and fewer executors would not make them larger.
    """
    if measured.rate <= 0 or measured.saturated or measured.throttled or not measured.back_to_back:
        return measured.rate
    if not _small(known, measured) or not _alike(known, measured):
        return measured.rate
    return max(measured.rate, known.rate)


def _small(known: LargeBatches, measured: Measured) -> bool:
    return measured.rows_per_batch < SMALL * known.rows


def _alike(known: LargeBatches, measured: Measured) -> bool:
    if len(known.shares) != len(measured.shares):
        return False
    return sum(min(pair) for pair in zip(known.shares, measured.shares, strict=True)) >= ALIKE
