"""Messages that wait to be written, grouped into named batches. Pure; not thread safe.

A batch keeps its name until it is in the storage, and the next one is made only then: so a repeated put is the same
object, and the inbox has a writer's messages in their order.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

from tidegate_spark.control.channels.transports.inbox import LARGEST_BATCH, MOST_IN_BATCH, BatchName, body_of, moment_of


@dataclass(frozen=True)
class Pace:
    """How messages are put together, and how many may wait."""

    linger_seconds: float = 0.05
    """A message waits so long for others that are put with it."""
    most_in_batch: int = 500
    """Messages of one object; it is put at once when so many wait."""
    most_waiting: int = 10_000
    most_waiting_bytes: int = 32 << 20
    """What may wait to be written: more than either is not taken."""

    def __post_init__(self) -> None:
        """Refuse what cannot be kept."""
        if not 1 <= self.most_in_batch <= MOST_IN_BATCH:
            raise ValueError(f"most_in_batch must be from 1 to {MOST_IN_BATCH}, and not {self.most_in_batch}")
        if self.linger_seconds < 0 or self.most_waiting < 1 or self.most_waiting_bytes < 1:
            raise ValueError("linger_seconds must not be negative, most_waiting and most_waiting_bytes at least 1")


@dataclass(frozen=True)
class Waiting:
    """A message that is not known to be written."""

    id: str
    body: bytes
    since: float


@dataclass(frozen=True)
class Batch:
    """Messages that are written together."""

    name: BatchName
    messages: tuple[Waiting, ...]

    @property
    def body(self) -> bytes:
        """The content of the object."""
        return body_of([message.body for message in self.messages])


class Outbox:
    """One writer's."""

    def __init__(self, writer: str, pace: Pace) -> None:
        """Start with nothing."""
        self._writer, self._pace = writer, pace
        self._waiting: deque[Waiting] = deque()
        self._bytes = 0
        self._moment = ""
        self._under_way: Batch | None = None
        self.written = 0
        """Messages that are known to be in the storage: all of a smaller number."""

    @property
    def following(self) -> int:
        """The number of the next message."""
        return self.written + len(self._waiting)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of what waits, in its order."""
        return tuple(message.id for message in self._waiting)

    @property
    def since(self) -> float | None:
        """Since when the oldest one waits, None if nothing does."""
        return self._waiting[0].since if self._waiting else None

    def has_room(self, size: int) -> bool:
        """Return whether a message of so many bytes can be taken."""
        few = len(self._waiting) < self._pace.most_waiting
        # One that is larger than all the room there is comes alone.
        return few and (not self._waiting or self._bytes + size <= self._pace.most_waiting_bytes)

    def add(self, name: str, body: bytes, now: float) -> int:
        """Take a message; return its number."""
        self._waiting.append(Waiting(name, body, now))
        self._bytes += len(body)
        return self.following - 1

    def linger(self, now: float) -> float:
        """Return how many seconds there are until something is to be written; only if something waits."""
        if self._under_way is not None or len(self._waiting) >= self._pace.most_in_batch:
            return 0.0
        return max(0.0, self._waiting[0].since + self._pace.linger_seconds - now)

    def batch(self, now: float) -> Batch | None:
        """Return what is to be written next, the same until it was :meth:`done`; None if nothing waits."""
        if self._under_way is None and self._waiting:
            some = self._some()
            # A clock that was set back must not put it before what was written.
            self._moment = max(self._moment, moment_of(now))
            self._under_way = Batch(BatchName(self._moment, self._writer, self.written, len(some)), some)
        return self._under_way

    def done(self) -> None:
        """Take note that the batch is in the storage."""
        assert self._under_way is not None
        for message in self._under_way.messages:
            self._waiting.popleft()
            self._bytes -= len(message.body)
        self.written = self._under_way.name.following
        self._under_way = None

    def _some(self) -> tuple[Waiting, ...]:
        some: list[Waiting] = []
        size = 0
        for message in itertools.islice(self._waiting, self._pace.most_in_batch):
            size += len(message.body)
            if some and size > LARGEST_BATCH:
                break
            some.append(message)
        return tuple(some)
