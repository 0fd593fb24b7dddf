"""A pool of few threads for requests, with a bounded queue. Thread safe."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger("tidegate")
Work = Callable[[], None]


class Threads:
    """Daemons: none keeps the process alive. They start with the first request."""

    def __init__(self, name: str, number: int, waiting: int) -> None:
        """Prepare ``number`` of them, for which at most ``waiting`` requests wait."""
        self._name, self._number = name, number
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._free = threading.Semaphore(waiting + number)
        self._started = False

    def take(self, work: Work) -> bool:
        """Have ``work`` done, or return False if too much waits; called by one thread alone."""
        if not self._number or not self._free.acquire(blocking=False):
            return False
        if not self._started:
            self._started = True
            for _ in range(self._number):
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
        self._waiting.put(work)
        return True

    def close(self) -> None:
        """End those threads that have nothing to do, and the others when they are done."""
        for _ in range(self._number if self._started else 0):
            self._waiting.put(None)

    def _run(self) -> None:
        while True:
            work = self._waiting.get()
            if work is None:
                return
            try:
                work()
            except Exception:
                log.exception("a request was not answered")
            finally:
                self._free.release()
