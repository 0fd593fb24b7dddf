"""Builds the report about messages from the log and their accounts. I/O by both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate_spark.contract.control_protocol import MessageReport, QueryAcknowledgement
from tidegate_spark.control.messages import accounts
from tidegate_spark.control.messages.accounts import needs_of
from tidegate_spark.control.messages.ack_store import AckStore
from tidegate_spark.control.service.ports import DriverOperations
from tidegate_spark.control_log import messages
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.log_objects import LostError
from tidegate_spark.control_log.reducer import Verdict, in_force, is_whole
from tidegate_spark.snapshots.repository import SnapshotRepository

MOST_LATE = 64
"""Messages whose batches are looked for at a time: that asks the store, and others wait for the log meanwhile."""


def entry_at(found: ControlLog, sequence: int) -> tuple[Entry, ...]:
    """Return the entry of a number, nothing if the log does not go back so far."""
    try:
        return found.entries(sequence - 1, sequence)
    except LostError:
        return ()


def messages_between(found: ControlLog, after: int, upto: int) -> tuple[Entry, ...]:
    """Return the messages that come into force behind a position, up to another one; may raise as the log does.

    What a rollback undid may have been removed. Without anything else nothing is returned: no query is to miss it.

    Raises:
        LostError: the log does not go back so far.
    """
    entries, lineage = found.entries(after, upto, whole=False), found.state_at(after).lineage if after else 0
    if not is_whole(entries, after, upto, lineage):
        raise LostError(messages.LOG_BEGINS_LATER)
    return in_force(entries, lineage)


def new_in_batch(found: ControlLog, before: int, position: int) -> tuple[Entry, ...]:
    """Return the messages that came into force with a batch: ``before`` is the position of the one before it, or -1."""
    if position <= before:
        return ()
    # A query that is new starts with what is in force, and acknowledges what nobody has forgotten.
    after = max(before, 0) if before >= 0 else min(found.begin, position)
    try:
        return messages_between(found, after, position)
    except LostError:
        return ()


def uncalled(found: ControlLog, handled: int, planned: int, position: int) -> tuple[Entry, ...]:
    """Return the messages up to a position for which a process has not called the driver's handlers.

    Args:
        found: the log.
        handled: up to where this process has; below 0: it has called none yet.
        planned: the newest position of a batch that was there when it began. What is before it had been called; a base
            may be of behind it.
        position: up to where.
    """
    if handled >= 0:
        return messages_between(found, handled, position)
    try:
        return messages_between(found, max(0, min(planned, found.begin)), position)
    except LostError:
        return messages_between(found, found.begin, position)


@dataclass(frozen=True)
class Reporting:
    """One look at what is known."""

    repository: SnapshotRepository
    log: ControlLog
    store: AckStore
    asking: frozenset[str] | None
    """The queries that ask what is in force; None: it is not known yet."""
    driver_types: frozenset[str]
    """Of messages that have a handler at the driver."""

    def logged(self, drafts: Iterable[Entry]) -> list[Entry]:
        """Return those messages that are in the log: as they are there, or as they were offered if they are so old."""
        known = [(draft, self.log.find(draft.id)) for draft in drafts]
        return [
            entry
            for draft, sequence in known
            if sequence is not None
            for entry in entry_at(self.log, sequence) or (replace(draft, sequence=sequence),)
        ]

    def reports_of(self, entries: Sequence[Entry]) -> list[MessageReport]:
        """Return what is to be said of each of these messages."""
        reported = self.log.verdicts(entry.sequence for entry in entries)
        reports = []
        for entry in entries:
            account, needs = self.store.get(self.repository, entry.sequence), needs_of(entry.type, self.driver_types)
            reports.append(accounts.report_of(entry, reported.get(entry.sequence), account, needs, self.asking))
        return reports

    def note_verdicts(self, entries: Iterable[Entry]) -> None:
        """Have the accounts of messages say what the log says of them, which is to forget the oldest."""
        known = {entry.sequence: entry for entry in entries}
        for sequence, verdict in self.log.verdicts(known).items():
            account, entry = self.store.get(self.repository, sequence), known[sequence]
            reason, message = account.reason or entry.reason, account.message or entry.message
            self.store.put(replace(account, verdict=verdict, reason=reason, message=message))

    def acknowledge_late(
        self, operations: DriverOperations, entries: Iterable[Entry], positions: Mapping[str, int]
    ) -> None:
        """Say which batch it was for messages that a process did not come to say it of, which ended meanwhile.

        Args:
            operations: the driver, which knows the batches.
            entries: messages.
            positions: query -> position of its newest committed batch.
        """
        queries = sorted(self.asking or ())
        late = [
            (query, entry)
            for entry in entries
            if entry.kind is Kind.MESSAGE
            for query in queries
            if entry.sequence <= positions.get(query, -1)
            if query not in self.store.get(self.repository, entry.sequence).queries
        ][:MOST_LATE]
        reported = self.log.verdicts(entry.sequence for _, entry in late)
        for query, entry in late:
            account = self.store.get(self.repository, entry.sequence)
            batch = operations.batch_of(self.repository, query, entry.sequence)
            if batch is not None and reported.get(entry.sequence, account.verdict) is Verdict.IN_FORCE:
                self.store.put(replace(account, queries={**account.queries, query: QueryAcknowledgement(batch, 1, 1)}))
