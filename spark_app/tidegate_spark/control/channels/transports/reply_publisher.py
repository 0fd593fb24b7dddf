"""Publishes replies in a thread of its own. Talks to the broker.

pika waits for a confirmation without limit, and a quorum queue without a majority gives none. So only this thread
waits, and neither the next message nor a stop does.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tidegate_spark.control.channels.ports import Reply

IDLE_SECONDS = 10.0
"""Between two looks at a connection that nothing is published on: a broker gives one up that shows no life."""


class Outlet(Protocol):
    """A connection on which replies are published. Used by one thread; what it raises ends it."""

    def publish(self, reply: Reply) -> None:
        """Publish a reply; when it returns the broker has it."""

    def keep_alive(self) -> None:
        """Show the broker that the connection is alive."""

    def close(self) -> None:
        """Give it up; never raises."""


class UnconfirmedError(Exception):
    """The broker has not said in time that it has the replies. They are not given again before it is known."""


class ReplyPublisher:
    """Used by one thread; it has another one."""

    def __init__(
        self,
        connect: Callable[[], Outlet],
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is connected yet.

        Args:
            connect: returns a connection; may raise what cannot be published then.
            idle_seconds: between two signs of life.
            clock: seconds that only increase.
        """
        self._connect, self._idle_seconds, self._clock = connect, idle_seconds, clock
        self._given: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        self._ends: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._open: Reply | None = None
        """Given, and not known to be published."""
        self._known: set[Reply] = set()
        """Published, of those that the last :meth:`publish` was about."""
        self.confirmed = 0
        """So many were published in all."""
        self._thread: threading.Thread | None = None

    def publish(self, replies: Sequence[Reply], seconds: float) -> None:
        """Publish replies in their order, those that are not published already.

        Args:
            replies: all that are to be published; after an error the same again, more or fewer.
            seconds: how long to wait at most, for all of them together; after that no further one is begun. Nobody
                waits for one twice: of a reply that took longer only what is known by then is looked at.

        Raises:
            UnconfirmedError: the broker has not confirmed all of them in time.
            Exception: what the connection raised.
        """
        self._known &= set(replies)
        if self._open is not None:
            self._await(self._open, 0.0)
        until = self._clock() + seconds
        for number, reply in enumerate(each for each in replies if each not in self._known):
            left = until - self._clock()
            if number and left <= 0:
                raise UnconfirmedError
            self._begin(reply)
            self._await(reply, left)
        self._known.clear()

    def close(self) -> None:
        """Publish nothing more; returns at once."""
        self._given.put(None)

    def _begin(self, reply: Reply) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="control-replies", daemon=True)
            self._thread.start()
        self._open = reply
        self._given.put(reply)

    def _await(self, reply: Reply, seconds: float) -> None:
        try:
            error = self._ends.get(timeout=seconds) if seconds > 0 else self._ends.get_nowait()
        except queue.Empty:
            raise UnconfirmedError from None
        self._open = None
        if error is not None:
            raise error
        self._known.add(reply)
        self.confirmed += 1

    def _run(self) -> None:
        outlet: Outlet | None = None
        while True:
            reply, error = None, None
            try:
                reply = self._given.get(timeout=self._idle_seconds)
                if reply is None:
                    break
                outlet = outlet or self._connect()
                outlet.publish(reply)
            except queue.Empty:
                outlet = _kept(outlet)
                continue
            except Exception as raised:
                error = raised
                _close(outlet)
                outlet = None
            self._ends.put(error)
        _close(outlet)


def _kept(outlet: Outlet | None) -> Outlet | None:
    """Return a connection that is alive; None if it is not, or there is none."""
    try:
        if outlet is not None:
            outlet.keep_alive()
    except Exception:  # there will be another one when there is something to be published
        _close(outlet)
        return None
    return outlet


def _close(outlet: Outlet | None) -> None:
    if outlet is not None:
        outlet.close()
