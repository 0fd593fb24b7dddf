"""The accounts of messages from a channel, and the replies that are still to be sent. I/O by the object store's port.

All are in one object, ``control/channel.json``, because a thousand may come in a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tidegate_spark.contract.control_protocol import AskedMessage, MessageReport
from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.control.channels.cluster_requests import OPEN_STATES, ClusterRequests, involves_cluster
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control_log.entries import ControlLogError, Entry, Kind, unreadable
from tidegate_spark.control_log.log_objects import PREFIX
from tidegate_spark.snapshots.repository import SnapshotRepository

NAME = "channel.json"
MOST_OPEN, MOST_UNSENT = 10_000, 2_000
"""Messages of which nothing final is known, and answers that the broker does not take: what is more is released."""


@dataclass(frozen=True)
class OpenMessage:
    """A message of which something may still come."""

    entry: Entry
    """Without its payload, unless the operator gets that."""
    account: Account


@dataclass(frozen=True)
class Ended:
    """The reply to a message."""

    entry: Entry
    report: MessageReport


@dataclass(frozen=True)
class Page:
    """All of it, as it is kept."""

    upto: int = 0
    """Entries of the log up to here are in these numbers."""
    open: tuple[OpenMessage, ...] = ()
    unsent: tuple[Ended, ...] = ()
    received: int = 0
    ended: dict[str, int] = field(default_factory=dict)


class PendingReplies:
    """One driver's. Not thread safe."""

    def __init__(self) -> None:
        """Start with nothing; :meth:`load` comes first."""
        self.accounts: dict[int, Account] = {}
        """Of the open ones, by sequence; whoever learns more of one puts it here."""
        self._entries: dict[int, Entry] = {}
        self._unsent: dict[int, Ended] = {}
        self.received = 0
        self.ended: dict[str, int] = {}
        self._upto = 0
        self._saved, self._etag = Page(), ""
        self._ready: tuple[Ended, ...] = ()
        self.cluster = ClusterRequests()
        self._reports: dict[int, MessageReport] = {}
        """What the driver knows of those in which the cluster has a part."""
        self._asked: tuple[AskedMessage, ...] | None = None

    @property
    def upto(self) -> int:
        """Sequence up to which entries were noted."""
        return self._upto

    @property
    def open(self) -> tuple[Entry, ...]:
        """The open ones, in the order of the log."""
        return tuple(self._entries[number] for number in sorted(self._entries))

    @property
    def ready(self) -> tuple[Ended, ...]:
        """The replies that are recorded, in the order in which they came to be."""
        return self._ready

    @property
    def asked(self) -> tuple[AskedMessage, ...] | None:
        """The report for the operator, as it is recorded; None: not yet."""
        return self._asked

    def load(self, repository: SnapshotRepository, last: int, *, begin: bool = False) -> None:
        """Read what is kept.

        Args:
            repository: the application's.
            last: of the log. Where nothing is kept, entries up to here are none of this application's brokers': those
                that there are came with the snapshot that it starts from.
            begin: write that down, before the first message comes.

        Raises:
            ControlLogError: it cannot be understood.
            Exception: what the store's client raises.
        """
        key = repository.key(PREFIX, NAME)
        found = repository.store.get(key)
        try:
            page = from_stored(Page, found[0]) if found is not None else Page(upto=last)
        except ValueError as error:
            raise unreadable(f"{key} cannot be read as the account of a channel", error) from error
        self._saved, self._etag = page, found[1] if found is not None else ""
        self._upto, self.received, self.ended = page.upto, page.received, dict(page.ended)
        self._entries = {it.entry.sequence: it.entry for it in page.open}
        self.accounts.clear()
        self.accounts.update((it.entry.sequence, it.account) for it in page.open)
        self._unsent = {it.entry.sequence: it for it in page.unsent}
        self._ready = page.unsent
        if begin and found is None:
            self._etag = self._put(repository, to_json(page).encode())

    def note(self, entries: Iterable[Entry], upto: int) -> None:
        """Take note of all entries behind :attr:`upto`, up to another place."""
        for entry in entries:
            if entry.sequence <= self._upto or not entry.origin or entry.kind not in (Kind.MESSAGE, Kind.REJECTED):
                continue
            self._entries[entry.sequence] = entry if involves_cluster(entry) else replace(entry, payload="null")
            self.accounts[entry.sequence] = Account(entry.sequence)
            self.received += 1
        self._upto = max(self._upto, upto)

    def end(self, reports: Iterable[MessageReport], *, answered: bool) -> None:
        """Take note of what is known of open messages; those that have ended get replies, if ``answered``."""
        known = list(reports)
        self._reports = {it.sequence: it for it in known if involves_cluster(self._entries[it.sequence])}
        reports = [self.cluster.completed(self._entries[it.sequence], it) for it in known]
        # Of what the cluster has a part in there are few, and nothing is released.
        others = [report for report in reports if report.sequence not in self._reports]
        too_many = {report.sequence for report in others[: max(0, len(reports) - MOST_OPEN)]}
        for report in reports:
            if report.state in OPEN_STATES and report.sequence not in too_many:
                continue
            entry = self._entries.pop(report.sequence)
            self.accounts.pop(report.sequence, None)
            self.ended[report.state.value] = self.ended.get(report.state.value, 0) + 1
            if answered:
                self._unsent[report.sequence] = Ended(entry, report)
        for sequence in list(self._unsent)[: max(0, len(self._unsent) - MOST_UNSENT)]:
            del self._unsent[sequence]

    def reported(self, sequences: Iterable[int]) -> None:
        """Take note that the broker has the answers for these."""
        gone = set(sequences)
        for sequence in gone:
            self._unsent.pop(sequence, None)
        self._ready = tuple(it for it in self._ready if it.entry.sequence not in gone)

    def save(self, repository: SnapshotRepository, *, whole: bool = False) -> None:
        """Write what has changed: with ``whole`` also if nothing came from a broker meanwhile.

        Raises:
            ControlLogError: another process has written; what it wrote is to be loaded.
            Exception: what the store's client raises.
        """
        page = Page(
            self._upto,
            tuple(OpenMessage(entry, self.accounts[entry.sequence]) for entry in self.open),
            tuple(self._unsent.values()),
            self.received,
            dict(self.ended),
        )
        same = page == (self._saved if whole else replace(self._saved, upto=page.upto))
        # Where nothing ever came from a broker there is nothing to keep.
        if not same and (page.received or self._etag):
            self._etag = self._put(repository, to_json(page).encode())
            self._saved = page
        self._ready = page.unsent
        self._asked = self.cluster.asked(self.open, self._reports)

    def _put(self, repository: SnapshotRepository, body: bytes) -> str:
        key = repository.key(PREFIX, NAME)
        etag = repository.store.put_if(key, body, self._etag or None)
        if etag is not None:
            return etag
        found = repository.store.get(key)
        if found is None or found[0] != body:
            self.load(repository, self._upto)
            raise ControlLogError(f"{key} was written by another process")
        return found[1]
