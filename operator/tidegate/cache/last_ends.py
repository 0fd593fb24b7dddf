"""The last ends of an application's driver and executors, as they were seen: their pods are gone. In memory; no I/O."""

from __future__ import annotations

from collections.abc import Container

from tidegate.engine.resource_key import Key
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import ROLE_DRIVER, ROLE_EXECUTOR

MOST_ENDS = 16
"""Executors kept of each application: enough to distinguish one loss from executors that end again and again."""
MOST_UNKNOWN = 256
"""Applications that are not known of which ends are kept.

The last pods of one that was deleted end after it, and nobody asks for them; but when the operator starts, or watches
are apart, a pod may be seen to end before its application is seen at all.
"""


class LastEnds:
    """The last end of each application's driver, and those of its executors, the earliest first."""

    def __init__(self, applications: Container[Key]) -> None:
        """Start with none; ``applications`` holds those that are known."""
        self._applications = applications
        self._drivers: dict[Key, PodRecord] = {}
        self._executors: dict[Key, tuple[PodRecord, ...]] = {}
        self._of_unknown: dict[Key, None] = {}

    def note_executor(self, key: Key, pod: PodRecord) -> None:
        """Take in a pod that has ended or is gone; of any but an executor, nothing is kept.

        Its first end stays: what ended by itself is deleted afterwards, and then looks like one that somebody deleted.
        """
        if pod.role != ROLE_EXECUTOR:
            return
        ends = self._executors.get(key, ())
        known = next((each for each in ends if each.uid == pod.uid), None)
        if known is None:
            self._executors[key] = (*ends, pod)[-MOST_ENDS:]
            self._bound(key)
        elif known.ended is None and not known.finished:
            self._executors[key] = tuple(pod if each is known else each for each in ends)

    def note_driver(self, key: Key, pod: PodRecord) -> None:
        """Take in a pod that is gone; nothing is kept but a driver whose end was seen."""
        if pod.role == ROLE_DRIVER and pod.ended is not None and not pod.running:
            self._drivers[key] = pod
            self._bound(key)

    def driver(self, key: Key) -> PodRecord | None:
        """Return the driver that went last, as it ended; None if there was another since, or no end was seen."""
        return self._drivers.get(key)

    def executors(self, key: Key) -> tuple[PodRecord, ...]:
        """Return those of one application's executors."""
        return self._executors.get(key, ())

    def forget_driver(self, key: Key) -> None:
        """Forget the driver that went last: there is another one."""
        self._drivers.pop(key, None)

    def forget(self, key: Key) -> None:
        """Forget those of one application."""
        self.forget_driver(key)
        self._executors.pop(key, None)
        self._of_unknown.pop(key, None)

    def _bound(self, key: Key) -> None:
        if key in self._applications:
            return
        self._of_unknown[key] = self._of_unknown.pop(key, None)  # as the newest
        while len(self._of_unknown) > MOST_UNKNOWN:
            oldest = next(iter(self._of_unknown))
            if oldest in self._applications:  # it has come to be known since
                del self._of_unknown[oldest]
            else:
                self.forget(oldest)
