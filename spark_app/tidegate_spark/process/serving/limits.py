"""The limits of a port. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Lane(Enum):
    """Who answers a request."""

    AT_ONCE = "at once"
    """The thread that reads, from memory alone: nothing that others ask can be in the way."""
    SHORT = "short"
    LONG = "long"
    """A thread of those that may be kept for a minute."""


@dataclass(frozen=True)
class Limits:
    """Of one port. Neither a thread nor a connection is beyond them."""

    connections: int = 128
    """When there is one more, one is closed of which no whole request has come: that of the address that has most of
    them, and of those the oldest. Who sends a request at once, as the kubelet does, is served however many do not."""
    threads: int = 2
    """For each lane but the one that needs none."""
    long_threads: int = 0
    waiting: int = 32
    """Whole requests for which no thread is free, in each lane; another one is answered 503."""
    request_seconds: float = 10.0
    """For a whole request, from its first byte (of the first one of a connection: from the connection) to its last."""
    answer_seconds: float = 10.0
    """For an answer to be taken."""
    idle_seconds: float | None = 10.0
    """How long a connection is kept open for the next request; None: as long as there is room."""

    def __post_init__(self) -> None:
        """Refuse limits with which all connections could be waiting for threads, and a probe would find no room."""
        busy = (self.threads + self.waiting) + (self.long_threads + self.waiting if self.long_threads else 0)
        if busy >= self.connections:
            raise ValueError(f"{busy} requests can be under way, and there are {self.connections} connections")
