"""A store client that is kept for a while. I/O by the function that makes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tidegate_spark.snapshots.repository import SnapshotRepository

KEPT_SECONDS = 300.0
"""Credentials may be renewed; to make a client costs some hundredths of a second."""


class Reached:
    """The application's storage. Thread safe."""

    def __init__(self, connect: Callable[[], SnapshotRepository], clock: Callable[[], float] = time.monotonic) -> None:
        """Reach it by ``connect``, which may raise."""
        self._connect, self._clock, self._lock = connect, clock, threading.Lock()
        self._kept: tuple[float, SnapshotRepository] | None = None

    def repository(self) -> SnapshotRepository:
        """Return what reaches the storage; raises what making it raises."""
        with self._lock:
            now = self._clock()
            if self._kept is None or now - self._kept[0] > KEPT_SECONDS:
                self._kept = (now, self._connect())
            return self._kept[1]

    def forget(self) -> None:
        """Make another one next time: with this one something went wrong."""
        with self._lock:
            self._kept = None
