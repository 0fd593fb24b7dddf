"""The interface of the driver for the message service. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.reducer import State
from tidegate_spark.snapshots.repository import SnapshotRepository


class DriverOperations(Protocol):
    """What the message service asks of the driver around it."""

    def is_open(self) -> bool:
        """Return whether the program has said which messages it understands, as far as that can be known."""

    def inspection(self, entry: Entry) -> Callable[[], Entry] | None:
        """Return what looks at what a message names, None if there is nothing to look at; returns at once.

        It returns the message as it is to be logged; it may take long, and raise: then it is called again.
        """

    def asking(self) -> frozenset[str]:
        """Return the queries that run and ask what is in force."""

    def pause(self, wanted: bool) -> None:
        """Hold queries between two batches from now on, or let them go on; returns at once."""

    def carry_out(self, repository: SnapshotRepository, entry: Entry, account: Account, state: State) -> Account | None:
        """Do the driver's part of a built-in message; return what came of it, None if it is not done yet.

        ``state`` is what is in force at the end of the log.
        """

    def awaits_batch(self, entry: Entry, account: Account, state: State) -> bool:
        """Return whether a built-in message comes into force with a batch, and not with what the driver does for it."""

    def begin(self, state: State) -> None:
        """Do what is in force from before this process."""

    def batch_of(self, repository: SnapshotRepository, query: str, sequence: int) -> int | None:
        """Return the first committed batch of a query whose position is behind a message, None if that is not known."""

    def oldest(self, repository: SnapshotRepository) -> int | None:
        """Return the oldest position that a batch of the lineage can still be asked for; None: no query asks."""
