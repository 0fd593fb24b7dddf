"""The last ends of executors, as they were seen first: Spark deletes their pods at once. In memory; no I/O."""

from __future__ import annotations

from tidegate.engine.resource_key import Key
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import ROLE_EXECUTOR

MOST_ENDS = 16
"""Kept of each application: enough to tell one loss from executors that end again and again."""


class ExecutorEnds:
    """The last ends of the executors of each application, the earliest first."""

    def __init__(self) -> None:
        """Start with none."""
        self._ends: dict[Key, tuple[PodRecord, ...]] = {}

    def note(self, key: Key, pod: PodRecord) -> None:
        """Take in a pod that has ended or is gone; of any but an executor, nothing is kept.

        Its first end stays: what ended by itself is deleted afterwards, and then looks like one that somebody deleted.
        """
        if pod.role != ROLE_EXECUTOR:
            return
        ends = self._ends.get(key, ())
        known = next((each for each in ends if each.uid == pod.uid), None)
        if known is None:
            self._ends[key] = (*ends, pod)[-MOST_ENDS:]
        elif known.ended is None and not known.finished:
            self._ends[key] = tuple(pod if each is known else each for each in ends)

    def of(self, key: Key) -> tuple[PodRecord, ...]:
        """Return those of one application."""
        return self._ends.get(key, ())

    def forget(self, key: Key) -> None:
        """Forget those of one application."""
        self._ends.pop(key, None)
