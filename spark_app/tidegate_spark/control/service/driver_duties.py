"""Carries out the driver's part of logged messages. I/O by the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from tidegate_spark.control.channels.pending_replies import PendingReplies
from tidegate_spark.control.messages.accounts import needs_of
from tidegate_spark.control.messages.ack_store import AckStore
from tidegate_spark.control.service.ports import DriverOperations
from tidegate_spark.control.service.reports import entry_at
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.reducer import State, Verdict
from tidegate_spark.snapshots.repository import SnapshotRepository

log = logging.getLogger("tidegate")


class DriverDuties:
    """Does it, each message as far as it can be done now. Not thread safe."""

    def __init__(
        self, operations: DriverOperations, store: AckStore, channel: PendingReplies, on_state: Callable[[State], None]
    ) -> None:
        """Prepare; ``on_state`` is called with what is in force, before anything is done."""
        self._operations, self._store, self._channel, self._on_state = operations, store, channel, on_state
        self._carried = 0
        """From where it is looked at."""

    def begin(self, position: int) -> None:
        """Look at what is behind a position; of older ones those are looked at that are offered again."""
        self._carried = position

    def forget(self, gone: int) -> None:
        """Take note up to where entries are gone."""
        self._carried = max(self._carried, gone)

    def carry_out(self, repository: SnapshotRepository, found: ControlLog, offered: Iterable[str]) -> None:
        """Do what can be done now.

        Args:
            repository: the application's.
            found: the log.
            offered: ids of messages that are offered.

        Raises:
            Exception: what the store's client raises.
        """
        upto = found.last
        entries = self._of_interest(repository, found, offered, upto)
        waiting = [entry for entry in entries if self._waits(repository, entry)]
        left = self._carry_out_some(repository, found, waiting) if waiting else []
        # What is behind the driver is looked at no more, however much that is.
        self._carried = max(self._carried, min(left, default=upto + 1) - 1)

    def _carry_out_some(self, repository: SnapshotRepository, found: ControlLog, waiting: Sequence[Entry]) -> list[int]:
        """Do the driver's part of these messages; return those that are not done yet."""
        # Whether such a one has expired is decided when its batch is planned.
        later = self._awaiting_batch(repository, found, waiting)
        found.decide(entry.sequence for entry in waiting if entry.sequence not in later)
        decided = found.verdicts(entry.sequence for entry in waiting)
        state = found.state_at(found.last)
        self._on_state(state)
        left = [number for number, verdict in decided.items() if verdict is Verdict.UNDECIDED]
        for entry in (entry for entry in waiting if decided.get(entry.sequence) is Verdict.IN_FORCE):
            done = self._operations.carry_out(repository, entry, self._store.get(repository, entry.sequence), state)
            if done is None:
                left.append(entry.sequence)
                continue
            self._store.put(done)
            log.info("control: %s (%d) is done", entry.type, entry.sequence, extra={"action": "control"})
        return left

    def _awaiting_batch(self, repository: SnapshotRepository, found: ControlLog, waiting: Sequence[Entry]) -> set[int]:
        expiring = [entry for entry in waiting if entry.expires]
        if not expiring:
            return set()
        state = found.state_at(found.last)
        accounts = ((entry, self._store.get(repository, entry.sequence)) for entry in expiring)
        return {entry.sequence for entry, known in accounts if self._operations.awaits_batch(entry, known, state)}

    def _waits(self, repository: SnapshotRepository, entry: Entry) -> bool:
        if entry.kind is not Kind.MESSAGE or not needs_of(entry.type, ()).driver or self._store.is_over(entry):
            return False
        return not self._store.get(repository, entry.sequence).done

    def _of_interest(
        self, repository: SnapshotRepository, found: ControlLog, offered: Iterable[str], upto: int
    ) -> list[Entry]:
        """Return the entries of which the driver's part is not behind it, and older ones that are open."""
        known = [found.find(name) for name in offered]
        of_channel = [entry.sequence for entry in self._channel.open if self._waits(repository, entry)]
        carried = max(self._carried, found.begin)
        older = sorted({number for number in (*known, *of_channel) if number is not None and number <= carried})
        return [*(entry for number in older for entry in entry_at(found, number)), *found.entries(carried, upto)]
