"""Distinguishes a stuck query from one that is slow or waits. Pure; standard library only.

A query is stalled if it has work and none of its tasks has finished for the timeout. It is not while it waits for a
trigger or a source's offsets, nor while the storage does not answer or there is no executor: a restart fixes neither.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QuerySample:
    """What was seen of one query at one moment."""

    batch_under_way: bool
    """Offsets of a batch are written and it is not committed."""
    lag_rows: int
    """Rows that wait at the sources; -1 if they do not report them."""
    between_triggers: bool
    tasks_finished: frozenset[tuple[int, int]]
    """Stages of the query and how many of their tasks have finished or failed; anything that differs is progress."""
    last_batch: int
    waits: bool = False
    """It has nothing to do before its trigger's next time."""


@dataclass(frozen=True)
class _Since:
    check: QuerySample
    time: float


class StallDetector:
    """Remembers since when each query has shown no progress."""

    def __init__(self, timeout_seconds: float) -> None:
        """Call a query stalled after ``timeout_seconds``; 0: never."""
        self._timeout = timeout_seconds
        self._since: dict[str, _Since] = {}

    def check(self, query: str, seen: QuerySample, now: float, dependencies_up: bool) -> float:
        """Take note of a query's state; return for how many seconds it has had work and made no progress.

        Args:
            query: its name.
            seen: its state now.
            now: seconds, monotonic.
            dependencies_up: False while the storage does not answer or there is no executor.
        """
        before = self._since.get(query)
        if before is None or not dependencies_up or not _has_work(seen) or _progressed(before.check, seen):
            self._since[query] = _Since(seen, now)
            return 0.0
        return now - before.time

    def forget(self, query: str) -> None:
        """Forget a query that has ended."""
        self._since.pop(query, None)

    def is_stalled(self, seconds: float, pause: float = 0.0) -> bool:
        """Return whether so many seconds without progress are too many.

        Args:
            seconds: what :meth:`check` returned.
            pause: for how long its trigger lets a query that is well show nothing.
        """
        return 0 < self._timeout <= seconds - pause


def _has_work(seen: QuerySample) -> bool:
    return seen.batch_under_way or (seen.lag_rows > 0 and not seen.between_triggers)


def _progressed(before: QuerySample, now: QuerySample) -> bool:
    return (before.tasks_finished, before.last_batch) != (now.tasks_finished, now.last_batch)
