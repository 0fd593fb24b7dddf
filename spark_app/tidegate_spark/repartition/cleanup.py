"""Removes what failed repartitions left, while the application runs. I/O by the repository, in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tidegate_spark.snapshots.lineages import attempts
from tidegate_spark.snapshots.repository import SnapshotRepository

FIRST_PAUSE = 60.0
LONGEST_PAUSE = 3600.0
"""Seconds until it is tried again what a storage did not let be done; they double."""

log = logging.getLogger("tidegate")


class Clearing:
    """The one time that a process does this: in a thread, once it has committed a batch."""

    def __init__(
        self,
        lineage: int,
        connect: Callable[[], SnapshotRepository],
        is_held: Callable[[], bool],
        stopping: threading.Event,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        """Prepare.

        Args:
            lineage: in which the process writes.
            connect: reaches the application's storage with the credentials of the moment.
            is_held: whether the fence is this process's; raises what the store's client raises.
            stopping: set when the process is to end.
            first_pause: seconds until it is tried again.
        """
        self._lineage, self._connect, self._is_held = lineage, connect, is_held
        self._stopping, self._pause = stopping, first_pause
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin, if that was not done before; returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.run, name="clearing", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Remove what is left; what fails is done again later."""
        pause = self._pause
        while not self._stopping.is_set():
            try:
                clear_left(self._connect(), self._lineage, self._is_held)
            except Exception as error:  # whatever it is: nothing here depends on it
                log.warning("what a repartition has left is not removed: %s", error, extra={"action": "clear"})
            else:
                return
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def clear_left(own: SnapshotRepository, lineage: int, is_held: Callable[[], bool]) -> None:
    """Remove every lineage but ``lineage`` that somebody began to make and no driver came to run in.

    A pod has the fence before it says that it makes a lineage. So if the fence is still ours after all that is said was
    read, none of it is said by a pod that came after us. Those before us are nobody's any more: the operator had given
    each of them up when it launched us in another lineage, and numbers are not used twice.

    Args:
        own: the application's.
        lineage: in which this process writes.
        is_held: whether the fence is this process's.

    Raises:
        Exception: what the store's client raises; to be done again.
    """
    for number in attempts.begun(own):
        if number == lineage:
            continue
        if not is_held():
            return
        if attempts.clear(own, number):
            message = "lineage %d, which a repartition made and no driver came to run in, is removed"
            log.info(message, number, extra={"action": "clear"})
