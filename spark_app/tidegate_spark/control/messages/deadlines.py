"""Runs checks and handlers in threads, and waits for each no longer than a message may take. No I/O of its own.

Python cannot end a thread: work that is given up runs on, its result is ignored, and it keeps one of a few places,
which bounds the number of threads.
"""

from __future__ import annotations

import contextvars
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_AT_WORK = 4
"""Threads of one kind of work, those that were given up among them."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
SLOW_SECONDS = 10.0
"""After so long it is in the log what is waited for: what stands behind it in the stream waits as well."""
_FORGOTTEN_SECONDS = 600.0
FIELD = "spec.control.messageTimeoutSeconds"

log = logging.getLogger("tidegate")


class OverdueError(Exception):
    """Work took longer than one message may take; the message says so."""


class Attempt(Generic[T]):
    """Work on one message, that began or waits for a place."""

    def __init__(self, what: str, work: Callable[[], T], seconds: float, places: threading.BoundedSemaphore) -> None:
        """Prepare; nothing runs yet, and the time does.

        Args:
            what: the work, for people.
            work: does it, with the context of who waits.
            seconds: what it may take.
            places: one is taken while it runs.
        """
        self._what, self._seconds, self._places = what, seconds, places
        self._context, self._work = contextvars.copy_context(), work
        now = time.monotonic()
        self._end, self._slow = now + seconds, now + SLOW_SECONDS
        self._begun, self._done, self._given_up = False, threading.Event(), threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._seen = ""

    def wait(self, seconds: float = threading.TIMEOUT_MAX) -> bool:
        """Wait at most so long; return whether it is done, or its time is up."""
        until = min(time.monotonic() + seconds, self._end)
        if not self._waited(min(until, self._slow)):
            self._log_if_slow()
            self._waited(until)
        return self._done.is_set() or self._is_over()

    def result(self) -> T:
        """Return what the work returned, or raise what it raised.

        Raises:
            OverdueError: it is not done, and given up now.
        """
        if not self._done.is_set():
            self._given_up.set()
            raise OverdueError(self._words())
        if self._error is not None:
            raise self._error
        return self._result[0]

    def is_forgotten(self) -> bool:
        """Return whether its time was up long ago: nobody waits for it, or its message was withdrawn."""
        return time.monotonic() >= self._end + _FORGOTTEN_SECONDS

    def _waited(self, until: float) -> bool:
        """Wait until then, first for a place; return whether it is done."""
        if not self._begun:
            if not self._places.acquire(timeout=max(0.0, until - time.monotonic())):
                return False
            self._begin()
        return self._done.wait(max(0.0, until - time.monotonic()))

    def _log_if_slow(self) -> None:
        """Write down, once, that it takes long, if it does and is not over anyway."""
        if self._slow <= time.monotonic() < self._end:
            self._slow = math.inf
            message = f"{self._what} takes longer than {SLOW_SECONDS:g} s and is given up after {self._seconds:g} s"
            why = "" if self._begun else ": it waits for earlier ones that were given up and still run"
            log.warning("control: %s (%s)%s", message, FIELD, why, extra={"action": "control"})

    def _is_over(self) -> bool:
        return time.monotonic() >= self._end

    def _begin(self) -> None:
        self._begun = True
        try:
            threading.Thread(target=self._run, name="control-work", daemon=True).start()
        except BaseException:
            self._places.release()
            raise

    def _run(self) -> None:
        try:
            self._result.append(self._context.run(self._work))
        except BaseException as error:
            self._error = error
        finally:
            self._places.release()
            self._done.set()
        if self._given_up.is_set():
            log.info("control: %s has ended after it was given up", self._what, extra={"action": "control"})

    def repeated(self, work: Callable[[], T]) -> T:
        """Do work again and again until it raises nothing, or nobody waits any more; to be called by the work."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return work()
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                if message != self._seen:
                    log.warning("control: %s: %s", self._what, message, extra={"action": "control"})
                self._seen = message
                if self._given_up.wait(pause):
                    raise
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _words(self) -> str:
        message = f"{self._what} took longer than {self._seconds:g} s ({FIELD})"
        if not self._begun:
            return f"{message}: earlier ones that were given up still run"
        return f"{message}: {self._seen}" if self._seen else message


class Deadlines:
    """Work of one kind. Thread safe."""

    def __init__(self, seconds: float, most: int = MOST_AT_WORK) -> None:
        """Give each message so many seconds, and have no more threads at a time than ``most``."""
        self._seconds, self._places = seconds, threading.BoundedSemaphore(most)

    def attempt(self, what: str, work: Callable[[Attempt[T]], T]) -> Attempt[T]:
        """Return work that can be waited for; its time runs from now on."""
        made: Attempt[T] = Attempt(what, lambda: work(made), self._seconds, self._places)
        return made

    def run(self, what: str, work: Callable[[], T]) -> T:
        """Return what work returns, or raise what it raises.

        Raises:
            OverdueError: it took too long, and is given up.
        """
        attempt = self.attempt(what, lambda _: work())
        attempt.wait()
        try:
            return attempt.result()
        except OverdueError as error:
            log.warning("control: %s", error, extra={"action": "control"})
            raise
