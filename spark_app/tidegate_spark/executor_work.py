"""How much executors work, from what Spark's own status tells of each. Talks to the JVM; the account itself is pure."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark import SparkContext

IDLE_SECONDS = 60.0
"""An executor that has not ended a task for so long has nothing to do: batches that long are rare."""


def task_seconds(context: SparkContext) -> dict[str, float]:
    """Return, for each executor that is registered, the duration of all its tasks that have ended."""
    found = context._jsc.sc().statusStore().executorList(True)
    executors = [found.apply(index) for index in range(found.size())]
    return {str(each.id()): float(each.totalDuration()) / 1000 for each in executors if str(each.id()) != "driver"}


class WorkAccount:
    """Adds up what executors did, those that went included."""

    def __init__(self) -> None:
        """Begin with nothing done."""
        self.total = 0.0
        self._known: dict[str, float] = {}
        self._changed: dict[str, float] = {}

    def take(self, now: float, seconds: Mapping[str, float]) -> int:
        """Take in what Spark tells; returns how many executors had nothing to do for a while.

        Args:
            now: monotonic seconds.
            seconds: as :func:`task_seconds` returns them. An executor that is missing has gone.
        """
        for name, done in seconds.items():
            more = done - self._known.get(name, 0.0)
            if more > 0 or name not in self._known:
                self._changed[name] = now
            self.total += max(0.0, more)
        self._known = dict(seconds)
        self._changed = {name: at for name, at in self._changed.items() if name in seconds}
        return sum(1 for at in self._changed.values() if now - at >= IDLE_SECONDS)
