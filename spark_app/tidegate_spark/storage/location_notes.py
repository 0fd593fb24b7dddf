"""Which location the script gave each query of a lineage: ``names/unnamed-<lineage>.json``. I/O by the port.

Unnamed queries are distinguished by their ``checkpointLocation`` alone; of a named one it shows that the same query
comes again under another name. It may hold a secret, so a digest is noted, and never the location itself. The notes go
with the state: a snapshot has them, and a lineage that starts from one gets them.

If a known query starts with another location, a move is noted. Until the query commits a batch the former location is
in force, so that a start that fails loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.contract.object_paths import NAMES_PREFIX, checkpoint_directory
from tidegate_spark.storage import storage_messages as messages
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.store import NewerStorageError, SnapshotError, naming_newer

MOST_NAMED = 1000
"""So many named queries are noted, the latest ones: a script may start another one each minute, for years."""


class DamagedNotesError(SnapshotError):
    """The notes of a lineage say nothing; the message names the object and both ways on."""


@dataclass(frozen=True)
class Move:
    """A query that was started with another location than the one that is noted."""

    location: str
    """Digest of the new one."""
    after: int
    """The batch that was committed last before, -1: none. With a later one the new location is in force."""


@dataclass(frozen=True)
class NamedQuery:
    """A query that the script names, and that has a location."""

    name: str
    location: str
    """Digest of the one with which it was started last."""
    former: str = ""
    """Of the one before, if it had another: whoever has that now may be meant to continue, too."""


@dataclass(frozen=True)
class LocationNotes:
    """What is noted of one lineage."""

    queries: dict[str, str] = field(default_factory=dict)
    """Name -> digest of its location, empty of a query without one."""
    moves: dict[str, Move] = field(default_factory=dict)
    """Name -> how it moves."""
    named: tuple[NamedQuery, ...] = ()
    """The queries that the script names; whose location was noted last is the last."""

    def with_named(self, name: str, digest: str) -> LocationNotes:
        """Return the notes with a named query that is about to start."""
        known = self.of_named(name)
        if known is not None and known.location == digest:
            # One that is started again and again is not to be forgotten for those that were started once.
            is_old = known in self.named[: len(self.named) - MOST_NAMED // 2]
            return replace(self, named=(*self._without(name), known)) if is_old else self
        latest = NamedQuery(name, digest, known.location if known is not None else "")
        return replace(self, named=(*self._without(name), latest)[-MOST_NAMED:])

    def _without(self, name: str) -> list[NamedQuery]:
        return [each for each in self.named if each.name != name]

    def of_named(self, name: str) -> NamedQuery | None:
        """Return what is noted of a named query."""
        return next((each for each in self.named if each.name == name), None)

    def named_at(self, digest: str) -> list[str]:
        """Return the named queries that have a location, or had it before; the latest first."""
        return [each.name for each in reversed(self.named) if digest in (each.location, each.former)]

    def unnamed_at(self, digest: str) -> list[str]:
        """Return the unnamed queries that have a location, or are about to."""
        moving = {name: move.location for name, move in self.moves.items()}
        return [name for of in (self.queries, moving) for name, location in of.items() if location == digest]

    def in_force(self, newest: Callable[[str], int]) -> dict[str, str]:
        """Return name -> digest of the location of whoever committed its newest batch. Pure, but for ``newest``.

        Args:
            newest: returns the newest committed batch of a query, -1 if there is none.
        """
        moved = {name: move.location for name, move in self.moves.items() if newest(name) > move.after}
        return {**self.queries, **moved}


def notes_key(objects: AppObjects, lineage: int) -> str:
    """Return the key of a lineage's notes."""
    return objects.key(NAMES_PREFIX, f"unnamed-{lineage}.json")


def read(objects: AppObjects, lineage: int) -> tuple[LocationNotes, str | None]:
    """Return what is noted of a lineage and the ETag of that, nothing and None if nothing is.

    Raises:
        NewerStorageError: a newer Tidegate wrote it.
        DamagedNotesError: it is damaged.
        Exception: what the store's client raises.
    """
    key = notes_key(objects, lineage)
    found = objects.store.get(key)
    if found is None:
        return LocationNotes(), None
    try:
        with naming_newer(key):
            notes = from_stored(LocationNotes, found[0])
        for name in (*notes.queries, *notes.moves):
            if checkpoint_directory(name) != name:
                raise ValueError(messages.no_unnamed_query(name))
    except NewerStorageError:
        raise
    except ValueError as error:
        raise DamagedNotesError(messages.notes_damaged(key, lineage, error)) from error
    return notes, found[1]


def write_if(objects: AppObjects, lineage: int, notes: LocationNotes, etag: str | None) -> bool:
    """Note this if nobody noted anything since; return whether it is noted. Raises what the store's client raises."""
    return objects.store.put_if(notes_key(objects, lineage), to_json(notes).encode(), etag) is not None


def note_queries(
    objects: AppObjects, lineage: int, queries: Mapping[str, str], named: Mapping[str, str] | None = None
) -> None:
    """Note the queries of a lineage in which nothing has started yet; raises what the store's client raises.

    Args:
        objects: the application's.
        lineage: its.
        queries: those without a name.
        named: those that the script names, likewise name -> digest.
    """
    key = notes_key(objects, lineage)
    known = tuple(NamedQuery(name, digest) for name, digest in sorted((named or {}).items()))
    if queries or known:
        objects.store.put(key, to_json(LocationNotes(dict(queries), named=known)).encode())
    elif objects.store.get(key) is not None:
        objects.store.delete([key])  # of a lineage of the same number that was given up
