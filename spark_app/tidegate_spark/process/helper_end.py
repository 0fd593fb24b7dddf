"""The end of a helper pod's process: by itself, or because its pod is removed. Writes one file, ends the process.

Whoever is process 1 of a container and has no handler gets no SIGTERM: the kubelet would wait for the whole grace
period, and nobody would know what the process was at.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from tidegate_spark.contract.protocol import EXIT_STOPPED
from tidegate_spark.process.held_signals import FIRST, STOPS, let_stops_through
from tidegate_spark.process.signals import SIGTERM_ALONE, watch_signals
from tidegate_spark.process.termination import write_message

STOP_SECONDS = 10.0
"""For the next safe place after a stop was asked for. Then the process ends where it is: its work can be repeated."""

log = logging.getLogger("tidegate")


def hear_stops(on_stop: Callable[[], None]) -> None:
    """Call ``on_stop()``, in a thread, when a stop is asked for; now if one was held."""
    # An image may name another signal than SIGTERM (STOPSIGNAL).
    watch_signals(on_stop, STOPS if os.getpid() == FIRST else SIGTERM_ALONE)
    let_stops_through()


class HelperEnd:
    """The one end that the process has, with its termination message and exit code. Thread safe."""

    def __init__(self, termination_log: str) -> None:
        """Prepare; a stop is heard from :meth:`listen` on."""
        self._path = termination_log
        self._lock = threading.Lock()
        self._code: int | None = None
        self._left = threading.Event()
        self.asked = threading.Event()
        """Set once a stop was asked for."""

    def listen(self, stop: Callable[[], None], text: Callable[[], str]) -> None:
        """End soon when a stop is asked for, also by one that was held so far.

        Args:
            stop: has the work end at its next safe place; returns at once.
            text: the termination message of work that does not come to one in time.
        """

        def end() -> None:
            with self._lock:  # not while the interpreter goes, which takes no output of another thread any more
                if self._code is not None:
                    os._exit(self._code)
                if self.asked.is_set():
                    return
                log.warning("asked to stop", extra={"action": "stop"})
                stop()
                self.asked.set()
            if not self._left.wait(STOP_SECONDS):
                self.leave(text(), EXIT_STOPPED)
            # What is left of it, such as threads that wait for the storage, has nothing to add.
            os._exit(EXIT_STOPPED if self._code is None else self._code)

        hear_stops(end)

    def leave(self, text: str, code: int) -> int:
        """Write the termination message; return the exit code that goes with the first one, which stays."""
        with self._lock:
            if self._code is None:
                write_message(self._path, text)
                self._code = code
                self._left.set()
            return self._code
