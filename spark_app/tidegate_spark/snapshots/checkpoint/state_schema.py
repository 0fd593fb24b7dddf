"""The files with the columns of a state store: key and value, for each column family. Pure.

Spark's SchemaHelper writes them: versions 1 and 2 for stores with one family, version 3 (transformWithState, newer
joins) for several. Columns are in Spark's JSON form of a schema, in the order of the rows.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidegate_spark.snapshots.checkpoint.checkpoint import UnreadableCheckpointError, parsed, versioned

ONE_FAMILY = "default"
_NEWEST = 3
_OF_FAMILIES = 3

Columns = list[dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """The columns of one column family's rows."""

    key: Columns
    value: Columns


def families(path: str, body: bytes) -> dict[str, Family]:
    """Return the column families of a schema file by name.

    Args:
        path: of the file, for messages.
        body: its content.

    Raises:
        UnreadableCheckpointError: it is no such file, or one of a newer Spark.
    """
    with _said_of(path):
        return _Reader(path, body).families()


def key_columns(path: str, body: bytes) -> Columns:
    """Return the columns of the key of a store with one family; raises as :func:`families`."""
    with _said_of(path):
        return _Reader(path, body).one_family().key


@contextlib.contextmanager
def _said_of(path: str) -> Iterator[None]:
    try:
        yield
    except (struct.error, UnicodeDecodeError) as error:
        raise UnreadableCheckpointError(path, f"is no state schema ({error})") from error


class _Reader:
    """Reads what Java's DataOutputStream wrote."""

    def __init__(self, path: str, body: bytes) -> None:
        self._path, self._body, self._position = path, body, 0
        self._version, _ = versioned(path, self._utf(), _NEWEST)

    def families(self) -> dict[str, Family]:
        if self._version != _OF_FAMILIES:
            return {ONE_FAMILY: self.one_family()}
        found: dict[str, Family] = {}
        for _ in range(self._number(">i")):
            name = self._utf()
            found[name] = Family(self._numbered_columns(), self._numbered_columns())
            # How keys are encoded, and the key of a map: parts of the key's columns have both.
            self._chunks()
            self._chunks()
        return found

    def one_family(self) -> Family:
        return Family(self._columns(), self._columns())

    def _numbered_columns(self) -> Columns:
        self._number(">h")
        return self._columns()

    def _columns(self) -> Columns:
        found = parsed(self._path, self._chunks() if self._version > 1 else self._utf()).get("fields")
        if not isinstance(found, list):
            raise UnreadableCheckpointError(self._path, "has no list `fields` in a schema")
        return found

    def _chunks(self) -> str:
        return "".join(self._utf() for _ in range(self._number(">i")))

    def _number(self, form: str) -> int:
        (number,) = struct.unpack_from(form, self._body, self._position)
        self._position += struct.calcsize(form)
        return int(number)

    def _utf(self) -> str:
        size = self._number(">H")
        end = self._position + size
        if end > len(self._body):
            raise struct.error("it ends inside a string")
        text, self._position = self._body[self._position : end].decode("utf-8"), end
        return text
