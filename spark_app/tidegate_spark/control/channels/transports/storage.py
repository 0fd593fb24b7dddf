"""The inbox in the application's storage as a channel. I/O by the object store's port.

An object is removed once its messages are logged; one that was not removed is read again and recognized. A poll of an
empty inbox is one listing.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidegate_spark.contract.control_protocol import InboxSettings
from tidegate_spark.contract.object_paths import INBOX_PREFIX, REPLIES_PREFIX
from tidegate_spark.contract.protocol import Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels import messages as texts
from tidegate_spark.control.channels.ports import (
    ChannelError,
    Delivery,
    Received,
    Reply,
)
from tidegate_spark.control.channels.transports import inbox
from tidegate_spark.control_log.entries import WRITERS
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.s3_client import FaultError, code_of, fault_of, is_of_key, is_of_object
from tidegate_spark.storage.store import Entry

MOST_LISTED = 1000
"""Objects of one look, the first by their names: what one request lists."""
MOST_OBJECTS, MOST_MESSAGES, MOST_BYTES = 64, 2000, 8 << 20
"""Of one delivery, whose messages are logged together."""
AT_ONCE = 8
"""Requests."""
MOST_WRITERS = 2000
"""Of whom it is known how far they were listed."""
SWEEP_SECONDS, SWEPT_AT_ONCE = 600.0, 1000
"""Between two looks at old replies; so many are looked at between two looks at the inbox."""
ATTEMPTS = 10
"""At an object of replies that another driver writes, too."""
_REASONS = {
    Reason.CREDENTIALS_MISSING: Reason.CHANNEL_CREDENTIALS_MISSING,
    Reason.CREDENTIALS_REJECTED: Reason.CHANNEL_CREDENTIALS_REJECTED,
    Reason.BUCKET_NOT_FOUND: Reason.CHANNEL_MISSING,
}

log = logging.getLogger("tidegate")


class StorageChannel:
    """See :class:`tidegate_spark.control.channels.ports.Channel`."""

    def __init__(
        self,
        settings: InboxSettings,
        connect: Callable[[], SnapshotRepository],
        place: Storage,
        secret: str = "",
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare; nothing is connected yet.

        Args:
            settings: how it is read.
            connect: reaches the storage with the credentials of the moment.
            place: the storage, for what is said of its faults.
            secret: name of the Secret with its credentials, likewise.
            wait: waits for so many seconds.
        """
        self._settings, self._connect, self._place, self._secret = settings, connect, place, secret
        self._wait, self._pool = wait, ThreadPoolExecutor(AT_ONCE, "tidegate-control-inbox")
        self._reached: SnapshotRepository | None = None
        self._listed: deque[Entry] = deque()
        """What was listed and not delivered yet."""
        self._held: frozenset[str] = frozenset()
        """Names that were held back at the look before."""
        self._waiting = 0
        self._following: dict[str, int] = {}
        """Writer -> the number behind his last object that was listed."""
        self._delivered: dict[str, None] = {}
        """Keys of what was delivered and not taken yet."""
        self._due = self._sweep_due = 0.0
        self._sweep: Iterator[Entry] | None = None

    def open(self, consumed: Mapping[str, int]) -> Delivery:
        """Reach the storage, and look into the inbox."""
        with self._faults():
            self._reached = self._connect()
            self._following = {name: at for name, at in consumed.items() if name.startswith(WRITERS)}
            self._check()
        return Delivery()

    def receive(self, seconds: float) -> Delivery:
        """Return what comes next."""
        with self._faults():
            if not self._listed:
                pause = self._due - time.monotonic()
                if pause > 0:
                    self._wait(min(pause, seconds))
                if pause > seconds:
                    return Delivery()
                self._sweep_some()
                self._check()
            return self._read(self._some())

    def taken(self, delivery: Delivery) -> None:
        """Remove the objects of everything that was delivered so far: it is in the log."""
        with self._faults():
            self._repository.store.delete(self._delivered)
            self._delivered.clear()

    def answer(self, replies: Sequence[Reply]) -> None:
        """Put replies where those look who wrote the messages."""
        together: dict[str, list[Reply]] = {}
        for reply in replies:
            together.setdefault(inbox.reply_name(reply.origin, reply.offset), []).append(reply)
        with self._faults():
            list(self._pool.map(self._put_or_drop, together, together.values()))

    def waiting(self) -> int:
        """Return how many messages were in the inbox at the last listing and have not been read, by their names."""
        return self._waiting

    def close(self) -> None:
        """Look no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def _repository(self) -> SnapshotRepository:
        assert self._reached is not None, "the channel is not open"
        return self._reached

    # --- looking ---

    def _check(self) -> None:
        began = time.monotonic()
        prefix = self._repository.key(INBOX_PREFIX) + "/"
        found = list(itertools.islice(self._repository.store.list(prefix), MOST_LISTED))
        self._due = began + (self._settings.poll_seconds if len(found) < MOST_LISTED else 0.0)
        found = [entry for entry in found if entry.key not in self._delivered]
        held: set[str] = set()
        for entry in sorted(found, key=lambda entry: entry.key):
            name = entry.key[len(prefix) :]
            # Who goes on where another writer ended has a later name: nothing passes by what is held back.
            if not held and self._follows(name):
                self._listed.append(entry)
            else:
                held.add(name)
        self._held = frozenset(held)
        self._waiting = sum(_count(entry.key[len(prefix) :]) for entry in found)

    def _follows(self, name: str) -> bool:
        """Return whether an object may come now; take note of it if so.

        A listing is not of one moment: it may lack an object that was put while it was made, and have a later one of
        the same writer. Such a later one is held back until the next look, which has both: each is put when the one
        before it is there. If the next look lacks the earlier one as well, it is gone, or another driver took it.
        """
        batch = inbox.batch_of(name)
        if batch is None:
            return True
        origin = inbox.origin_of(name)
        if batch.first > self._following.get(origin, 0) and name not in self._held:
            return False
        # Again at the end: whoever was listed longest ago is forgotten first.
        self._following[origin] = max(batch.following, self._following.pop(origin, 0))
        while len(self._following) > MOST_WRITERS:
            del self._following[next(iter(self._following))]
        return True

    def _some(self) -> list[Entry]:
        some: list[Entry] = []
        messages = size = 0
        while self._listed and len(some) < MOST_OBJECTS:
            following = self._listed[0]
            messages += _count(self._name(following))
            size += min(following.size, inbox.LARGEST_OBJECT)
            if some and (messages > MOST_MESSAGES or size > MOST_BYTES):
                break
            some.append(self._listed.popleft())
        return some

    def _read(self, some: Sequence[Entry]) -> Delivery:
        found: list[Received] = []
        positions: dict[str, int] = {}
        for entry, messages in zip(some, self._pool.map(self._messages_of, some), strict=False):
            if messages is None:
                continue  # another driver took it
            self._delivered[entry.key] = None
            found += messages
            batch = inbox.batch_of(self._name(entry))
            if batch is not None:
                positions[messages[0].origin] = batch.following
        self._waiting = max(0, self._waiting - sum(_count(self._name(entry)) for entry in some))
        return Delivery(tuple(found), positions)

    def _messages_of(self, entry: Entry) -> tuple[Received, ...] | None:
        name = self._name(entry)
        if entry.size > inbox.LARGEST_OBJECT:
            return (inbox.too_large(name, entry.size),)
        try:
            found = self._repository.store.get(entry.key, inbox.LARGEST_OBJECT + 1)
        except Exception as error:
            if not is_of_object(error):
                raise
            # Nobody will ever read it, and what is behind it does not wait for that.
            return (inbox.withheld(name, code_of(error)),)
        if found is not None and len(found[0]) > inbox.LARGEST_OBJECT:
            return (inbox.too_large(name, len(found[0])),)  # it was replaced meanwhile
        return inbox.messages_in(name, found[0]) if found is not None else None

    def _name(self, entry: Entry) -> str:
        return self._repository.below(entry.key)[len(INBOX_PREFIX) + 1 :]

    # --- replies ---

    def _put_or_drop(self, name: str, replies: Sequence[Reply]) -> None:
        """Put replies; those to an object of whatever name are dropped if the store takes none under that name."""
        try:
            self._put_replies(name, [reply.body for reply in replies])
        except Exception as error:
            is_writers = replies[0].offset >= 0
            if is_writers or not (isinstance(error, ChannelError) or is_of_key(error)):
                raise
            log.warning("control channel: no reply can be %s: %s", name, error, extra={"action": "channel"})

    def _put_replies(self, name: str, replies: Sequence[bytes]) -> None:
        store, key = self._repository.store, self._repository.key(name)
        for _ in range(ATTEMPTS):
            before = store.get(key)
            body, etag = before if before is not None else (None, None)
            if store.put_if(key, inbox.with_replies(body, replies), etag) is not None:
                return
        raise ChannelError(Reason.CHANNEL_UNAVAILABLE, texts.contended(key, ATTEMPTS))

    def _sweep_some(self) -> None:
        """Remove some of the replies that are too old, from time to time."""
        now = time.time()
        if self._sweep is None:
            if now < self._sweep_due:
                return
            self._sweep = self._repository.store.list(self._repository.key(REPLIES_PREFIX) + "/")
        seen = list(itertools.islice(self._sweep, SWEPT_AT_ONCE))
        oldest = now - self._settings.keep_replies_seconds
        self._repository.store.delete([entry.key for entry in seen if entry.modified < oldest])
        if len(seen) < SWEPT_AT_ONCE:
            self._sweep, self._sweep_due = None, now + SWEEP_SECONDS

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn what the store's client says into ChannelError."""
        try:
            yield
        except ChannelError:
            raise
        except FaultError as error:
            raise _as_error(error.fault) from error
        except Exception as error:
            fault = fault_of(error, self._place, self._secret)
            if fault is None:
                # No word of the storage's: whoever looks for a broken network would look in vain.
                raise ChannelError(Reason.CHANNEL_UNAVAILABLE, texts.inbox_unusable(error)) from error
            raise _as_error(fault) from error


def _as_error(fault: Fault) -> ChannelError:
    return ChannelError(_REASONS.get(fault.reason, Reason.CHANNEL_UNAVAILABLE), fault.message)


def _count(name: str) -> int:
    batch = inbox.batch_of(name)
    return batch.count if batch is not None else 1
