"""The entries of the control log: messages, and decisions about them. Pure.

Entries are numbered from 1 without a gap and never changed. A later decision is an entry of its own, so all readers up
to one position know the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tidegate_spark.contract.control_protocol import ControlOrder
from tidegate_spark.contract.json_form import NewerFormatError, from_stored, to_json
from tidegate_spark.storage.store import NewerStorageError, SnapshotError

VERSION = 1
WRITERS = "storage:"
"""Origins that begin so are of the inbox in the application's storage."""


class ControlLogError(SnapshotError):
    """The log cannot be read or written as it stands; the message is for a person."""


class NewerLogError(ControlLogError, NewerStorageError):
    """A newer Tidegate wrote a part of the log, or of what was done about it."""


def unreadable(what: str, error: ValueError) -> ControlLogError:
    """Return what it means that an object cannot be read; ``what`` names it, and what it should be."""
    kind = NewerLogError if isinstance(error, NewerFormatError) else ControlLogError
    return kind(f"{what}: {error}")


class Kind(str, Enum):
    """What an entry is."""

    MESSAGE = "message"
    REJECTED = "rejected"
    """A message that is never in force, for the reason given."""
    ACCEPTED = "accepted"
    """An earlier message that can expire is in force."""
    VOID = "void"
    """An earlier message has expired, and is never in force."""
    CONSUMED = "consumed"
    """From a broker's topic that is read again from where one says, everything before an offset needs no look."""
    ROLLED_BACK = "rolled-back"
    """Everything from behind a position up to here is not in force in this lineage and in those after it."""


@dataclass(frozen=True)
class Entry:
    """One entry."""

    sequence: int
    kind: Kind = Kind.MESSAGE
    id: str = ""
    """Of a message: unique for ever."""
    type: str = ""
    payload: str = "null"
    """JSON text."""
    time: float = 0.0
    """When it was logged, seconds since the epoch."""
    expires: float = 0.0
    """It may come into force until then, seconds since the epoch; 0: always."""
    source: str = ""
    reason: str = ""
    message: str = ""
    """Why it was rejected: for a condition, and for a person."""
    of: int = 0
    """The sequence that a decision is about; the position that is rolled back to."""
    lineage: int = 0
    """That starts with the position that is rolled back to."""
    origin: str = ""
    """Of a message from a channel: the part of a topic, the queue, or the writer, that it came from."""
    offset: int = -1
    """Its number there, if there are numbers; of ``consumed``: where reading goes on."""


def is_by_writer(entry: Entry) -> bool:
    """Return whether an entry is of one of the writers into the storage's inbox, who number their messages."""
    return entry.offset >= 0 and entry.origin.startswith(WRITERS)


@dataclass(frozen=True)
class Segment:
    """The entries that were written together."""

    version: int
    entries: tuple[Entry, ...]


def message_of(order: ControlOrder) -> Entry:
    """Return an order as an entry that has no number yet."""
    return Entry(
        0,
        id=order.id,
        type=order.type,
        payload=order.payload,
        expires=order.expires,
        source=order.source,
    )


def encode(entries: Sequence[Entry]) -> bytes:
    """Return a segment's content."""
    return to_json(Segment(VERSION, tuple(entries))).encode()


def decode(body: bytes, key: str) -> tuple[Entry, ...]:
    """Return the entries of a segment.

    Raises:
        ControlLogError: it is none; the message names ``key``.
        NewerLogError: a newer Tidegate wrote it.
    """
    try:
        segment = from_stored(Segment, body, VERSION)
    except ValueError as error:
        raise unreadable(f"{key} cannot be read as a segment of a control log", error) from error
    numbers = [entry.sequence for entry in segment.entries]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ControlLogError(f"{key} has the entries {numbers[:5]}…, which do not follow each other")
    return segment.entries
