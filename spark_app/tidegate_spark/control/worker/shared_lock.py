"""A reentrant lock that work in another thread can share with its holder. No I/O."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator


class _Holding:
    """One time that the lock was entered first."""

    active = True


class SharedLock:
    """It is passed on with the context (:mod:`contextvars`), for as long as who entered it first is inside."""

    def __init__(self) -> None:
        """Prepare; nobody holds it."""
        self._lock = threading.Lock()
        self._mine: contextvars.ContextVar[_Holding | None] = contextvars.ContextVar("holding", default=None)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold it."""
        mine = self._mine.get()
        if mine is not None and mine.active:
            yield
            return
        with self._lock:
            holding = _Holding()
            token = self._mine.set(holding)
            try:
                yield
            finally:
                holding.active = False
                self._mine.reset(token)
