"""What goes into the application and what comes out, as values and as JSON. Pure."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """One input record, as the topic holds it; its place in the topic is what it is known by."""

    partition: int
    offset: int
    time: float
    """When it was produced, in seconds since the epoch."""
    key: str
    number: int
    """Counts up from 1 within its key."""
    value: int

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return self.partition, self.offset


@dataclass(frozen=True, slots=True)
class Output:
    """What the application wrote about one input record: its key's account just after that record."""

    partition: int
    offset: int
    """Partition and offset of the input record, not of this one."""
    time: float
    """When it was written."""
    key: str
    count: int
    sum: int
    last: int

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset of the input record."""
        return self.partition, self.offset

    @property
    def account(self) -> "Account":
        """The account that it tells."""
        return Account(self.count, self.sum, self.last)


@dataclass(frozen=True, slots=True)
class Account:
    """A key's state: how many records, the sum of their values, the number of the last one."""

    count: int
    sum: int
    last: int


def value_of(key: str, number: int) -> int:
    """Return the value of a key's record: no two sets of records of a test's size have the same sum by chance."""
    return zlib.crc32(f"{key}:{number}".encode())


def encode(key: str, number: int) -> bytes:
    """Return an input record as it is sent."""
    return json.dumps({"key": key, "number": number, "value": value_of(key, number)}).encode()


def decode_record(partition: int, offset: int, time: float, content: bytes) -> Record:
    """Return an input record read back from its topic.

    Raises:
        ValueError: it is not one that :func:`encode` made.
    """
    fields = _fields(content)
    if fields["value"] != value_of(fields["key"], fields["number"]):
        raise ValueError(f"record {partition}/{offset} does not have the value of its key and number: {content!r}")
    return Record(partition, offset, time, fields["key"], fields["number"], fields["value"])


def decode_output(time: float, content: bytes) -> Output:
    """Return an output record; raise ValueError if it is none."""
    fields = _fields(content)
    partition, _, offset = str(fields["id"]).partition("/")
    return Output(int(partition), int(offset), time, fields["key"], fields["count"], fields["sum"], fields["last"])


def _fields(content: bytes) -> Mapping[str, Any]:
    fields = json.loads(content)
    if not isinstance(fields, dict):
        raise ValueError(f"not a record: {content[:200]!r}")
    return fields
