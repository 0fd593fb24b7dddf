"""What one evaluation passes to the next. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.autoscaling.algorithm.large_batches import NONE, LargeBatches

SATURATED = 1.0
"""Share of the time in batches of an application that does all it can."""


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier evaluations leave to the next; what comes after ``version`` is lost with the operator's process.

    Times before it are in seconds since the epoch, times after it in those of the monotonic clock, which nobody sets.
    """

    target: int = 0
    """0: none was decided yet."""
    scaled_at: float = 0.0
    scaled_from: int = 0
    scaled_reason: str = ""
    scaled_message: str = ""
    capacity_before: float = 0.0
    """Rows per second of the time in batches before the last step up that is to be judged; 0: none is."""
    capacity_with: int = 0
    """With how many executors that was."""
    capacity_busy: float = SATURATED
    """Share of the time in batches then."""
    packing: float = 1.0
    """Share of its executors' time that its batches can use; seen in long ones."""
    packed_with: int = 0
    """With how many executors that was seen; 0: it was not."""
    held_at: float = 0.0
    """When more executors turned out to be of no use; 0: they have not."""
    held: int = 0
    held_from: int = 0
    """From how many the step went that was of no use, and what was done before and after it, in rows per second."""
    held_before: float = 0.0
    held_after: float = 0.0
    held_arriving: float = 0.0
    """Rows per second that arrived, of an application that kept up all the same; 0: it did not."""
    held_times: int = 0
    """How often in a row more executors were of no use."""
    tasks_at_once: int = 0
    """The most that were seen at a time, if that is more than there are partitions; else 0."""
    large: LargeBatches = NONE
    """What an executor does in large batches, for when there are only small ones."""
    version: str = ""
    """Of the program and its partitions; what was learned of one says nothing of another."""
    changed_at: float = 0.0
    """When this process changed the number; one before it did that before the first of the peaks."""
    above_since: float = 0.0
    below_since: float = 0.0
    peaks: tuple[tuple[float, float], ...] = ()
    """Times and needs of the last interval, later ones lower: the first is the highest that counts."""
    peaks_since: float = 0.0
    measured_at: float = 0.0
