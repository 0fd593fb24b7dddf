"""Keeps what the script wrote last on standard error. Changes ``sys.stderr``; does no I/O of its own.

Spark's JVM writes to the same file descriptor, so the process's output as a whole cannot show it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

KEPT_CHARACTERS = 2000
SHOWN_LINES, SHOWN_CHARACTERS = 5, 600
"""What of it a message has: the usage of a command and what is wrong with it."""


@dataclass(frozen=True)
class _Unheard:
    """A stream of which nothing is kept."""

    write: Callable[[str], int]
    flush: Callable[[], None]


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

        for handler in logging.getLogger("tidegate").handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is stream:
                # What the runtime logs in the script's thread is none of the script's words.
                handler.setStream(_Unheard(write, stream.flush))
        stream.write = write_and_keep  # type: ignore[method-assign] # print, argparse and logging all come here

    def last(self) -> str:
        """Return the last lines, without empty ones."""
        lines = [line.rstrip() for line in self._text.splitlines() if line.strip()]
        return "\n".join(lines[-SHOWN_LINES:])[-SHOWN_CHARACTERS:]
