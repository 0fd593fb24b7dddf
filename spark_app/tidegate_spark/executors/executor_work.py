"""Measures how much executors work, from Spark's status of each. Talks to the JVM; the arithmetic is pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark import SparkContext

IDLE_SECONDS = 60.0
"""An executor that has had no task for so long has nothing to do: batches with such pauses in them are rare."""


@dataclass(frozen=True)
class Work:
    """What one executor has done, and is at."""

    seconds: float
    """Duration of all its tasks that have ended."""
    tasks: int = 0
    """That run now. Those of a catch-up batch take minutes each: an executor at one of them does not rest."""


def read_work(context: SparkContext) -> dict[str, Work]:
    """Return the work of each executor that is registered (Spark's ``ExecutorSummary``)."""
    found = context._jsc.sc().statusStore().executorList(True)
    executors = [found.apply(index) for index in range(found.size())]
    return {
        str(each.id()): Work(float(each.totalDuration()) / 1000, int(each.activeTasks()))
        for each in executors
        if str(each.id()) != "driver"
    }


class WorkTotals:
    """Adds up what executors did, those that went included."""

    def __init__(self) -> None:
        """Start with nothing done."""
        self.total = 0.0
        self._known: dict[str, float] = {}
        self._at_work: dict[str, float] = {}
        """When each was last known to have had a task, or came."""

    def take(self, now: float, work: Mapping[str, Work]) -> int:
        """Take in Spark's status; returns how many executors had nothing to do for a while.

        Args:
            now: monotonic seconds.
            work: as :func:`read_work` returns it. An executor that is missing has gone.
        """
        for name, done in work.items():
            more = done.seconds - self._known.get(name, 0.0)
            if more > 0 or done.tasks or name not in self._known:
                self._at_work[name] = now
            self.total += max(0.0, more)
        self._known = {name: done.seconds for name, done in work.items()}
        self._at_work = {name: at for name, at in self._at_work.items() if name in work}
        return sum(1 for at in self._at_work.values() if now - at >= IDLE_SECONDS)
