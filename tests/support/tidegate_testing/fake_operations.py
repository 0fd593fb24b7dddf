"""A driver around a control desk, that does what it is told at once."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.handlers import Message
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.reducer import State
from tidegate_spark.snapshots.repository import SnapshotRepository

BY_NAME: dict[str, Callable[[Message], Any]] = {}
"""What handlers do that cannot be carried to workers, such as to wait for the test."""

LONG_SECONDS = 60.0


def call_by_name(message: Message) -> Any:
    """Do what :data:`BY_NAME` has for a message's type; a handler that is carried as its name."""
    return BY_NAME[message.type](message)


def at_work() -> int:
    """Return how many threads are at work on a message, or still are though it was given up."""
    return len(_at_work())


def await_work() -> None:
    """Wait until nobody is at work on a message any more, also on those that were given up."""
    for thread in _at_work():
        thread.join(LONG_SECONDS)
    assert at_work() == 0


def _at_work() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "control-work"]


@dataclass
class FakeOperations:
    """See :class:`tidegate_spark.control.service.ports.DriverOperations`."""

    queries: set[str] = field(default_factory=set)
    open: bool = True
    paused: bool = False
    begun: State = field(default_factory=State)
    batches: dict[tuple[str, int], int] = field(default_factory=dict)
    undone: bool = False
    with_batches: frozenset[str] = frozenset()
    """Types of messages that come into force with batches."""
    carried: list[str] = field(default_factory=list)
    oldest_position: int | None = None
    checks: dict[str, Callable[[Entry], Entry]] = field(default_factory=dict)
    """Type -> what looks at what its messages name."""

    def is_open(self) -> bool:
        return self.open

    def inspection(self, entry: Entry) -> Callable[[], Entry] | None:
        check = self.checks.get(entry.type)
        return (lambda: check(entry)) if check is not None else None

    def asking(self) -> frozenset[str]:
        return frozenset(self.queries)

    def pause(self, wanted: bool) -> None:
        self.paused = wanted

    def carry_out(self, repository: SnapshotRepository, entry: Entry, account: Account, state: State) -> Account | None:
        self.carried.append(entry.type)
        return None if self.undone else replace(account, done=True)

    def awaits_batch(self, entry: Entry, account: Account, state: State) -> bool:
        return entry.type in self.with_batches and bool(self.queries - account.queries.keys())

    def begin(self, state: State) -> None:
        self.begun = state

    def batch_of(self, repository: SnapshotRepository, query: str, sequence: int) -> int | None:
        return self.batches.get((query, sequence))

    def oldest(self, repository: SnapshotRepository) -> int | None:
        return self.oldest_position
