"""One connection: reads a request, has it handled, sends the answer, each within its time. Does I/O.

It runs in the thread of the port's event loop; handlers run in other threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from tidegate_spark.process.serving.framing import Head, Reading, Refusal, length_of
from tidegate_spark.process.serving.handler import Handler, refusal_of
from tidegate_spark.process.serving.limits import Lane, Limits

GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
LINGER_SECONDS = 2.0
"""How long is read on after a refusal: a connection that is closed with unread bytes takes the answer with it."""
_WHOLE_BODY_FIRST = "100-continue"


class State(Enum):
    """What a connection is at."""

    READING = "reading"
    HANDLING = "handling"
    ANSWERING = "answering"
    CLOSING = "closing"


class Office(Protocol):
    """What connections have in common."""

    limits: Limits
    handler: type[Handler]

    def admit(self, connection: Connection) -> None:
        """Take note of one more, for which another one may have to go."""

    def forget(self, connection: Connection) -> None:
        """Take note of one less."""

    def hand_over(self, lane: Lane, content: bytes, back: Callable[[bytes, bool], None]) -> bool:
        """Have a request answered; False if too many are. ``back`` is called in the event loop's thread."""


class Connection(asyncio.Protocol):
    """From the first byte to the last."""

    def __init__(self, office: Office) -> None:
        """Belong to a port."""
        self._office, self._limits = office, office.limits
        self._loop = asyncio.get_running_loop()
        self.state = State.READING
        self.address = ""
        self._last = False
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self._reading = Reading()
        self._head: Head | None = None
        self._length = 0

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)  # called when all of an answer is sent
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._allow(self._limits.request_seconds)
        self._office.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Keep nothing."""
        self.state = State.CLOSING
        self._allow(None)
        self._office.forget(self)

    def data_received(self, data: bytes) -> None:
        """Go on with the request."""
        if self.state is not State.READING:
            return  # more than a request, or what comes after a refusal
        if not self._reading.buffer and self._limits.idle_seconds != self._limits.request_seconds:
            self._allow(self._limits.request_seconds)
        self._reading.buffer += data
        if self._head is None and not self._read_head():
            return
        content = self._reading.content(self._length)
        if content is not None and self._head is not None:
            self._hand_over(self._head, content)

    def resume_writing(self) -> None:
        """Go on after an answer that is gone."""
        if self.state is State.ANSWERING:
            self._answered()

    # --- called by the port ---

    @property
    def may_be_closed(self) -> bool:
        """Return whether nothing is lost but a client's time."""
        return self.state is not State.HANDLING

    def cut(self) -> None:
        """Close at once."""
        self.state = State.CLOSING
        if self._transport is not None:
            self._transport.abort()

    # --- steps ---

    def _read_head(self) -> bool:
        head = self._reading.head()
        if head is None:
            return False
        if isinstance(head, Head):
            refusal = self._office.handler.judge(head)
            length = refusal or length_of(head, self._office.handler.largest_body(head))
            if isinstance(length, int):
                self._head, self._length = head, length
                if head.headers.get("Expect", "").lower() == _WHOLE_BODY_FIRST and self._transport is not None:
                    self._transport.write(GO_ON)
                return True
            head = length
        self._refuse(head)
        return False

    def _hand_over(self, head: Head, content: bytes) -> None:
        goes_on = self._reading.goes_on(self._length)
        self.state = State.HANDLING
        self._allow(None)
        self._reading.buffer.clear()
        assert self._transport is not None
        self._transport.pause_reading()
        lane = self._office.handler.lane(head)
        if not self._office.hand_over(lane, content, lambda sent, last: self._send(sent, last=last or goes_on)):
            self._refuse(Refusal(503, "too many requests at once"))

    def _send(self, sent: bytes, *, last: bool) -> None:
        if self.state is not State.HANDLING or self._transport is None:
            return  # gone meanwhile
        self.state, self._last = State.ANSWERING, last
        self._allow(self._limits.answer_seconds)
        self._transport.write(sent)
        if not self._transport.get_write_buffer_size():
            self._answered()

    def _answered(self) -> None:
        assert self._transport is not None
        if self._last or self._transport.is_closing():
            self.state = State.CLOSING
            self._transport.close()
            return
        self.state = State.READING
        self._begin()
        self._allow(self._limits.idle_seconds)
        self._transport.resume_reading()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer, and read on for a moment what is of no use any more."""
        assert self._transport is not None
        self.state = State.CLOSING
        self._reading.buffer.clear()
        self._transport.write(refusal_of(refusal))
        self._transport.write_eof()
        if not self._transport.is_reading():
            self._transport.resume_reading()
        self._allow(LINGER_SECONDS)

    def _allow(self, seconds: float | None) -> None:
        """Cut the connection after so many seconds, unless this is called again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self.cut)
