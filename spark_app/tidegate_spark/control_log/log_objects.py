"""The objects of a control log: segments and bases. I/O by the object store's port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.control_log.dedup_window import Known, Writer
from tidegate_spark.control_log.entries import VERSION, ControlLogError, Entry, decode, encode, unreadable
from tidegate_spark.control_log.reducer import State
from tidegate_spark.storage.app_objects import AppObjects

PREFIX = "control"
SEGMENTS, BASES, ACKS = f"{PREFIX}/segments", f"{PREFIX}/bases", f"{PREFIX}/acks"


class LostError(ControlLogError):
    """The log does not go back so far any more."""


@dataclass(frozen=True)
class Base:
    """What is in force at a position."""

    version: int
    state: State
    known: tuple[Known, ...] = ()
    writers: tuple[Writer, ...] = ()


@dataclass(frozen=True)
class LogObjects:
    """All of one application's. Every method may raise what the store's client raises."""

    repository: AppObjects

    @property
    def place(self) -> str:
        """Where they are, for messages."""
        return self.repository.key(PREFIX)

    def segment(self, first: int) -> tuple[Entry, ...]:
        """Return the entries of a segment.

        Raises:
            LostError: it is not there.
            ControlLogError: it is none.
        """
        found = self.segment_if_there(first)
        if found is None:
            raise LostError(f"{self._key(SEGMENTS, first)} is gone")
        return found

    def segment_if_there(self, first: int) -> tuple[Entry, ...] | None:
        """Return the entries of a segment, None if it is not there; raises ControlLogError if it is none."""
        key = self._key(SEGMENTS, first)
        found = self.repository.store.get(key)
        return decode(found[0], key) if found is not None else None

    def put_segment(self, entries: Sequence[Entry]) -> bool:
        """Write entries together; return False if there is such a segment, which may be of an earlier attempt."""
        key = self._key(SEGMENTS, entries[0].sequence)
        return self.repository.store.put_if(key, encode(entries), None) is not None

    def base(self, position: int) -> Base:
        """Return a base; raises as :meth:`segment`."""
        key = self._key(BASES, position)
        found = self.repository.store.get(key)
        if found is None:
            raise LostError(f"{key} is gone")
        try:
            return from_stored(Base, found[0], VERSION)
        except ValueError as error:
            raise unreadable(f"{key} cannot be read as a base of a control log", error) from error

    def put_base(self, base: Base) -> None:
        """Write a base, unless there is one: that says the same of what is in force."""
        self.repository.store.put_if(self._key(BASES, base.state.position), to_json(base).encode(), None)

    def numbers(self, directory: str) -> list[int]:
        """Return the numbers in the names of a directory's objects, the lowest first."""
        prefix = self.repository.key(directory) + "/"
        names = (entry.key[len(prefix) :].removesuffix(".json") for entry in self.repository.store.list(prefix))
        return sorted(int(name) for name in names if is_number(name))

    def delete(self, directory: str, numbers: Iterable[int]) -> None:
        """Remove objects of a directory."""
        self.repository.store.delete([self._key(directory, number) for number in numbers])

    def _key(self, directory: str, number: int) -> str:
        return self.repository.key(directory, f"{number:012d}.json")
