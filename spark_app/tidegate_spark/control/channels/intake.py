"""Reads messages from a channel, has them logged, and acknowledges them. Runs in a thread.

After any failure the channel is closed, opened, and continues from the log: what was not logged comes again, and what
was logged and not acknowledged is recognized. No query waits for it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate_spark.contract.control_protocol import ChannelReport
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels import messages
from tidegate_spark.control.channels.admission import of_allowed_types
from tidegate_spark.control.channels.envelope import entry_of
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import (
    Channel,
    ChannelError,
    Delivery,
    Reply,
)
from tidegate_spark.control_log.entries import Entry, Kind

RECEIVE_SECONDS = 1.0
OPEN_SECONDS = 0.5
"""Between two looks at whether messages can be logged."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
MOST_ANSWERS = 500
"""At a time."""

log = logging.getLogger("tidegate")

Notice = Callable[[str, str, bool], None]
"""Reason, message, whether it is a warning."""


class ServicePort(Protocol):
    """What the intake asks of the message service."""

    def takes_in(self) -> bool:
        """Return whether messages can be logged."""

    def consumed(self) -> dict[str, int]:
        """Return from where on parts of topics are to be read."""

    def take_in(self, drafts: Sequence[Entry]) -> None:
        """Log messages; when it returns they are there for good."""

    def answers(self) -> tuple[Ended, ...]:
        """Return the reports that are to be made."""

    def answered(self, sequences: Sequence[int]) -> None:
        """Note that it was reported."""

    def counted(self) -> tuple[int, dict[str, int]]:
        """Return how many messages came, and how many ended in which state."""


@dataclass(frozen=True)
class Broker:
    """What is read."""

    kind: str
    """What it is called."""
    make: Callable[[], Channel]
    """Returns a channel that is not open yet; may raise ChannelError."""
    reply_of: Callable[[Ended], Reply]
    """Makes the report about a message."""
    types: tuple[str, ...] = ()
    """What may be sent through it; none: every type."""


class Intake:
    """One application's. :meth:`report` may be called by any thread."""

    def __init__(
        self, broker: Broker, service: ServicePort, notice: Notice, clock: Callable[[], float] = time.time
    ) -> None:
        """Prepare.

        Args:
            broker: what is read.
            service: has messages logged.
            notice: publishes a notice to people.
            clock: seconds since the epoch.
        """
        self._broker, self._service = broker, service
        self._notice, self._clock = notice, clock
        self._stopping, self._lock = threading.Event(), threading.Lock()
        self._connected, self._reason, self._message, self._since = False, "", "", clock()
        self._waiting = -1
        self._thread: threading.Thread | None = None
        self._pause = self._answer_pause = FIRST_PAUSE_SECONDS
        self._answer_at = 0.0
        """When answers are tried again that the broker did not take."""

    def start(self) -> None:
        """Begin to take messages in, in a thread."""
        self._thread = threading.Thread(target=self.run, name="control-channel", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take nothing more in; returns at once."""
        self._stopping.set()

    def join(self, seconds: float) -> bool:
        """Wait at most so long after :meth:`stop`; return whether nothing is taken in any more."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def report(self) -> ChannelReport:
        """Return how it is with the channel, and what came from it."""
        received, ended = self._service.counted()
        with self._lock:
            return ChannelReport(
                self._broker.kind,
                self._connected,
                self._reason,
                self._message,
                self._since,
                received,
                ended,
                self._waiting if self._connected else -1,
            )

    def run(self) -> None:
        """Take messages in until :meth:`stop`."""
        while not self._stopping.is_set():
            if not self._service.takes_in():
                self._stopping.wait(OPEN_SECONDS)
                continue
            try:
                self.attend()
            except ChannelError as error:
                self._lose(error.reason, str(error))
            except Exception as error:  # whatever it is: the stream goes on, and the channel is tried again
                log.warning("control channel: %r", error, extra={"action": "channel"})
                self._lose(Reason.CHANNEL_UNAVAILABLE, f"{type(error).__name__}: {error}")
            self._stopping.wait(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def attend(self) -> None:
        """Open the channel and take messages in; raises what ends that, and returns after :meth:`stop`."""
        channel = self._broker.make()
        with contextlib.closing(channel):
            self._take(channel, channel.open(self._service.consumed()))
            self._connect()
            while not self._stopping.is_set():
                self._take(channel, channel.receive(RECEIVE_SECONDS))
                self._answer(channel)
                self._pause = FIRST_PAUSE_SECONDS
                with self._lock:
                    self._waiting = channel.waiting()

    def _take(self, channel: Channel, delivery: Delivery) -> None:
        if delivery.lost:
            self._notice(Reason.CONTROL_MESSAGES_LOST, delivery.lost, True)
        if not delivery.messages and not delivery.positions:
            return
        drafts = of_allowed_types(map(entry_of, delivery.messages), self._broker.types)
        # Needed only where the last messages are known already: then no entry says that they were read.
        drafts += [Entry(0, Kind.CONSUMED, origin=part, offset=at) for part, at in sorted(delivery.positions.items())]
        try:
            self._service.take_in(drafts)
        except Exception as error:
            message = messages.log_not_written(self._broker.kind, error)
            raise ChannelError(Reason.CONTROL_LOG_UNAVAILABLE, message) from error
        channel.taken(delivery)

    def _answer(self, channel: Channel) -> None:
        answers, now = self._service.answers()[:MOST_ANSWERS], self._clock()
        # A time that is further away than any pause was noted before somebody set the clock back.
        if not answers or now < self._answer_at <= now + LONGEST_PAUSE_SECONDS:
            return
        try:
            channel.answer([self._broker.reply_of(ended) for ended in answers])
        except ChannelError as error:
            # Messages are taken in all the same: whoever sent them waits for what they do, first of all.
            if error.partial:  # it works, if slowly: what is left is not made to wait longer each time
                self._answer_pause = FIRST_PAUSE_SECONDS
            self._answer_at = self._clock() + self._answer_pause
            self._answer_pause = min(2 * self._answer_pause, LONGEST_PAUSE_SECONDS)
            self._report_answers(
                Reason.CONTROL_REPLIES_REFUSED, f"{self._broker.kind} does not accept the replies: {error}"
            )
        else:
            self._answer_pause, self._answer_at = FIRST_PAUSE_SECONDS, 0.0
            self._service.answered([ended.entry.sequence for ended in answers])
            self._report_answers(Reason.NONE, "")

    def _report_answers(self, reason: Reason, message: str) -> None:
        with self._lock:
            is_news = reason != self._reason
            self._reason, self._message = reason, message
        if reason and is_news:
            log.warning("control channel: %s: %s", reason, message, extra={"action": "channel", "reason": reason})
            self._notice(reason, message, True)

    def _connect(self) -> None:
        with self._lock:
            was_lost = bool(self._reason) and not self._connected
            self._connected, self._reason, self._message, self._since = True, Reason.NONE, "", self._clock()
        log.info("control channel: connected (%s)", self._broker.kind, extra={"action": "channel"})
        if was_lost:
            self._notice(
                Reason.CONTROL_CHANNEL_CONNECTED,
                messages.connected(self._broker.kind),
                False,
            )

    def _lose(self, reason: Reason, message: str) -> None:
        with self._lock:
            is_news = self._connected or reason != self._reason
            self._since = self._clock() if is_news else self._since
            self._connected, self._reason, self._message = False, reason, message
        if is_news:
            log.warning("control channel: %s: %s", reason, message, extra={"action": "channel", "reason": reason})
            text = messages.waiting_there(message, self._broker.kind)
            self._notice(reason, text, True)
