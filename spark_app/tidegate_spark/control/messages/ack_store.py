"""Stores the accounts of messages. I/O by the object store's port.

``control/acks/<first sequence>.json`` has up to 256 accounts, because a request for each of a thousand messages a
second would hold up queries that plan a batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidegate_spark.contract.json_form import NewerFormatError, from_stored, to_json
from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control_log.entries import ControlLogError, Entry, unreadable
from tidegate_spark.control_log.log_objects import ACKS
from tidegate_spark.snapshots.repository import SnapshotRepository

PAGE = 256
"""Messages of one object."""
ATTEMPTS = 5
"""Each is lost to a write of another process."""
LONGEST_KEPT = 8 * 1024
"""Characters of the driver's words about a message: a handler's exception may quote anything. Reports have fewer."""


@dataclass(frozen=True)
class Page:
    """The accounts of one object."""

    accounts: tuple[Account, ...] = ()


class AckStore:
    """One driver's. Not thread safe."""

    def __init__(self, together: dict[int, Account] | None = None) -> None:
        """Start with none; ``together``: those that somebody else keeps."""
        self._together = {} if together is None else together
        self._accounts: dict[int, Account] = {}
        self._etags: dict[int, str] = {}
        """Of the pages that were read, by their first sequence; empty: there was none."""
        self._changed: set[int] = set()

    def is_over(self, entry: Entry) -> bool:
        """Return whether a message is a broker's of which nothing more comes: there is no account of it any more."""
        return bool(entry.origin) and entry.sequence not in self._together

    def get(self, repository: SnapshotRepository, sequence: int) -> Account:
        """Return what is known of a message; raises what the store's client raises."""
        if sequence in self._together:
            return self._together[sequence]
        if _first(sequence) not in self._etags:
            self._read(repository, _first(sequence))
        return self._accounts.get(sequence) or Account(sequence)

    def put(self, account: Account) -> None:
        """Take note of more; it is kept with the next :meth:`save`."""
        account = replace(account, message=account.message[:LONGEST_KEPT])
        if account.sequence in self._together:
            self._together[account.sequence] = account
        elif self._accounts.get(account.sequence) != account:
            self._accounts[account.sequence] = account
            self._changed.add(account.sequence)

    def save(self, repository: SnapshotRepository) -> None:
        """Write what has changed; it can be called again if it raises.

        Raises:
            ControlLogError: other processes write all the time.
            Exception: what the store's client raises.
        """
        for first in sorted({_first(sequence) for sequence in self._changed}):
            self._write(repository, first)
            self._changed -= set(_numbers(first))

    def forget(self, repository: SnapshotRepository, upto: int, but: Iterable[int]) -> None:
        """Remove pages of messages up to ``upto``, but those that have one of some; raises what the client raises."""
        kept = {_first(sequence) for sequence in but}
        prefix = repository.key(ACKS) + "/"
        names = (entry.key[len(prefix) :].removesuffix(".json") for entry in repository.store.list(prefix))
        old = [int(name) for name in names if is_number(name) and int(name) + PAGE - 1 <= upto]
        gone = [first for first in old if first not in kept]
        repository.store.delete([_key(repository, first) for first in gone])
        for first in gone:
            self._etags.pop(first, None)
            for sequence in _numbers(first):
                self._accounts.pop(sequence, None)
                self._changed.discard(sequence)

    def _read(self, repository: SnapshotRepository, first: int) -> None:
        found = repository.store.get(_key(repository, first))
        for account in _accounts(found[0], _key(repository, first)) if found is not None else ():
            # What is known here is newer.
            self._accounts.setdefault(account.sequence, account)
        self._etags[first] = found[1] if found is not None else ""

    def _write(self, repository: SnapshotRepository, first: int) -> None:
        for _ in range(ATTEMPTS):
            if first not in self._etags:
                self._read(repository, first)
            accounts = tuple(self._accounts[number] for number in _numbers(first) if number in self._accounts)
            body = to_json(Page(accounts)).encode()
            etag = repository.store.put_if(_key(repository, first), body, self._etags[first] or None)
            if etag is not None:
                self._etags[first] = etag
                return
            # Another process's, or an earlier attempt of our own, whose answer was lost.
            del self._etags[first]
        raise ControlLogError(f"{_key(repository, first)} was written {ATTEMPTS} times by others meanwhile")


def _first(sequence: int) -> int:
    return (sequence - 1) // PAGE * PAGE + 1


def _numbers(first: int) -> range:
    return range(first, first + PAGE)


def _key(repository: SnapshotRepository, first: int) -> str:
    return repository.key(ACKS, f"{first:012d}.json")


def _accounts(body: bytes, key: str) -> tuple[Account, ...]:
    try:
        return from_stored(Page, body).accounts
    except NewerFormatError as error:
        # An older process must not write over it.
        raise unreadable(f"{key} cannot be read", error) from error
    except ValueError:
        # It says what was done, and no more: what can be found out again is.
        return ()
