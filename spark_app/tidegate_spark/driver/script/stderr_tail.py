"""Keeps what the script wrote last on standard error. Changes ``sys.stderr``; does no I/O of its own.

Spark's JVM writes to the same file descriptor, so the process's output as a whole cannot show it.
"""

from __future__ import annotations

import sys
import threading

KEPT_CHARACTERS = 2000
SHOWN_LINES, SHOWN_CHARACTERS = 5, 600
"""What of it a message has: the usage of a command and what is wrong with it."""


class StderrTail:
    """Keeps what one thread writes, through Python, on standard error."""

    def __init__(self) -> None:
        """Nothing was written."""
        self._text = ""

    def install(self) -> None:
        """Listen from now on to what the calling thread writes."""
        stream, thread = sys.stderr, threading.get_ident()
        write = stream.write

        def write_and_keep(text: str) -> int:
            if threading.get_ident() == thread:
                self._text = (self._text + text)[-KEPT_CHARACTERS:]
            return write(text)

        # What print, argparse and the script's logging write comes here; the runtime's log has a stream of its own.
        stream.write = write_and_keep  # type: ignore[method-assign]

    def last(self) -> str:
        """Return the last lines, without empty ones."""
        lines = [line.rstrip() for line in self._text.splitlines() if line.strip()]
        return "\n".join(lines[-SHOWN_LINES:])[-SHOWN_CHARACTERS:]
