"""The interface of a channel, as the intake uses it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidegate_spark.contract.reasons import Reason

LARGEST_EVENT = 128 * 1024
"""Bytes of a message as the broker has it; what is larger is not looked into."""


class ChannelError(Exception):
    """A channel cannot be used now; it is tried again. The message is for a person."""

    def __init__(self, reason: Reason, message: str, *, partial: bool = False) -> None:
        """Say why, for a condition and for a person.

        Args:
            reason: why.
            message: the same for a person.
            partial: whether some of what was to be done is done, and known to be: the next attempt goes on from there.
        """
        super().__init__(message)
        self.reason, self.partial = reason, partial


@dataclass(frozen=True)
class Received:
    """One message, as the broker has it."""

    origin: str
    """The part of a topic, or the queue."""
    body: bytes = b""
    content_type: str = ""
    offset: int = -1
    """Its number there; -1: there are none."""
    size: int = 0
    """Bytes of it, if it is larger than :data:`LARGEST_EVENT` and ``body`` is left out; otherwise 0."""
    unreadable: str = ""
    """Why it cannot be read, where the channel knows that: then it is not looked into."""


@dataclass(frozen=True)
class Delivery:
    """What came at once."""

    messages: tuple[Received, ...] = ()
    positions: Mapping[str, int] = field(default_factory=dict)
    """Part of a topic -> the offset from which to read on behind this, where that can be said."""
    lost: str = ""
    """What cannot be read any more, as text."""


@dataclass(frozen=True)
class Reply:
    """The reply to one message."""

    key: str
    """The id that its sender gave it."""
    body: bytes
    """A CloudEvent in JSON."""
    origin: str = ""
    offset: int = -1
    """Of the message."""


class Channel(Protocol):
    """One channel. Used by one thread; every method but ``close`` raises ChannelError."""

    def open(self, consumed: Mapping[str, int]) -> Delivery:
        """Connect.

        Args:
            consumed: part of a topic -> the offset from which on nothing is in the log.

        Returns:
            No messages, but from where they will be read if that is not known to the log.
        """

    def receive(self, seconds: float) -> Delivery:
        """Return what comes next, at once if there is something; nothing if nothing comes in so many seconds."""

    def taken(self, delivery: Delivery) -> None:
        """Take note that a delivery is in the log for good: the broker need not keep it for this application."""

    def answer(self, replies: Sequence[Reply]) -> None:
        """Publish what came of messages: once it returns the broker has them. After an error they are given again."""

    def waiting(self) -> int:
        """Return how many messages wait in the broker, -1 if that is not known. Returns at once."""

    def close(self) -> None:
        """Give the connection up; never raises."""
