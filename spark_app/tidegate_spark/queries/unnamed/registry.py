"""Names the unnamed queries of one driver process, and notes each name before the query starts. I/O by the store."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.noting import ONE_AT_A_TIME, TRIES, has_state, of_storage, until_noted
from tidegate_spark.queries.unnamed import script_text
from tidegate_spark.queries.unnamed.naming import Known, Named, UndecidedError, digest_of, name_for
from tidegate_spark.snapshots.checkpoint.query_logs import COMMITS
from tidegate_spark.storage import location_notes
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.location_notes import LocationNotes, Move

log = logging.getLogger("tidegate")


def in_thread(work: Callable[[], None]) -> None:
    """Do something while the script goes on."""
    threading.Thread(target=work, name="unnamed", daemon=True).start()


class UnnamedQueries:
    """The unnamed queries of one driver process."""

    def __init__(  # noqa: PLR0913 - those beyond are by name
        self,
        lineage: int,
        connect: Callable[[], AppObjects],
        is_only: Callable[[str, str], bool] = script_text.is_only,
        *,
        as_fault: Callable[[Exception], Exception] = lambda error: error,
        notice: Callable[[str, str, bool], None] = lambda reason, message, warning: None,
        beside: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        """Prepare.

        Args:
            lineage: the process runs in it.
            connect: reaches the application's storage.
            is_only: as :func:`tidegate_spark.queries.unnamed.script_text.is_only`.
            as_fault: returns what an exception of the store's client means, itself if that is not known.
            notice: gives the user a notice: reason, message, and whether it is a warning.
            beside: does what takes its time and nobody waits for.
        """
        self._lineage, self._connect, self._is_only = lineage, connect, is_only
        self._as_fault, self._notice, self._beside = as_fault, notice, beside
        self._lock = ONE_AT_A_TIME
        self._started: dict[str, str] = {}
        """What they are called -> digest of the location."""
        self._supposed = ""

    def name(self, site: str, location: str, others: frozenset[str]) -> str:
        """Return what a query is called that is about to start; from now on it counts as started.

        Args:
            site: file and line of its start.
            location: that the script gave it, empty if it gave none.
            others: names of the queries that were started in this process.

        Raises:
            UndecidedError: it may be one query or another.
            DamagedNotesError: what is noted cannot be read.
            NewerStorageError: a newer Tidegate wrote it.
            FaultError: the storage does not answer as it should.
        """
        with self._lock:
            again = next((name for name, of in self._started.items() if of == digest_of(location)), None)
            if again is not None:  # start() says whether it may be; the storage, which may fail, is asked for nothing
                return again
            first = not self._started
            name = until_noted(lambda: self._try(site, location, others))
        if first:
            self._beside(functools.partial(self._tell_unknown, site, name))
        return name

    def forget(self, name: str) -> None:
        """Take back that a query counts as started, because its start failed."""
        with self._lock:
            self._started.pop(name, None)
            if self._supposed == name:
                self._supposed = ""

    def _try(self, site: str, location: str, others: frozenset[str]) -> str | None:
        """Name a query; return None if another process noted something meanwhile."""
        with self._storage():
            objects = self._connect()
            notes, etag = location_notes.read(objects, self._lineage)
            noted = {**notes.in_force(functools.partial(self._newest, objects)), **self._started}
        known = Known(
            noted,
            others.union(self._started),
            functools.partial(self._has_state, objects),
            functools.partial(self._is_only, site),
            self._started,
            self._supposed,
            frozenset(notes.queries).union(self._started),
        )
        try:
            named = name_for(location, known)
            self._refuse_named_ones(notes, named, location, known)
        except UndecidedError:
            self._note_no_move()
            raise
        with self._storage():
            after = self._with(notes, noted, named, digest_of(location), objects)
            if after != notes and not location_notes.write_if(objects, self._lineage, after, etag):
                return None
        self._started[named.name] = digest_of(location)
        if named.supposed:
            self._supposed = named.name
        return named.name

    def _with(
        self, notes: LocationNotes, noted: dict[str, str], named: Named, digest: str, objects: AppObjects
    ) -> LocationNotes:
        """Return the notes with a query that is about to start."""
        if noted.get(named.name) == digest and named.name not in notes.moves:
            return notes
        # A location is noted once: whoever else was to move there did not come to it.
        moves = {
            name: move
            for name, move in notes.moves.items()
            if name != named.name
            and move.location != digest
            and (noted.get(name) != move.location or name not in notes.queries)
        }
        settled = {name: of for name, of in noted.items() if name in notes.queries}
        if noted.get(named.name) == digest or not named.supposed:
            return replace(notes, queries={**settled, named.name: digest}, moves=moves)
        move = Move(digest, self._newest(objects, named.name))
        return replace(notes, queries=settled, moves={**moves, named.name: move})

    def _refuse_named_ones(self, notes: LocationNotes, named: Named, location: str, known: Known) -> None:
        """Raise UndecidedError if a new query has the location of one that the script named, and names no more."""
        digest = digest_of(location)
        if not digest or known.has_state(named.name):
            return
        for other in notes.named_at(digest):
            if other != named.name and (other in known.started or known.has_state(other)):
                raise UndecidedError(messages.location_of_named(other))

    def _has_state(self, objects: AppObjects, name: str) -> bool:
        with self._storage():
            return has_state(objects, self._lineage, name)

    def _newest(self, objects: AppObjects, name: str) -> int:
        commits = objects.lineage_key(self._lineage, name, COMMITS) + "/"
        batches = (entry.key[len(commits) :] for entry in objects.store.list(commits))
        return max((int(batch) for batch in batches if is_number(batch)), default=-1)

    def _note_no_move(self) -> None:
        """Note no more that a query moves which was taken for the only one, and is not."""
        try:
            for _ in range(TRIES if self._supposed else 0):
                objects = self._connect()
                notes, etag = location_notes.read(objects, self._lineage)
                kept = {name: move for name, move in notes.moves.items() if name != self._supposed}
                if kept == notes.moves or location_notes.write_if(
                    objects, self._lineage, replace(notes, moves=kept), etag
                ):
                    return
        except Exception as error:  # whatever it is: the refusal says what to do
            log.warning("query %r: its location is still noted as one that changes: %s", self._supposed, error)

    def _storage(self) -> AbstractContextManager[None]:
        return of_storage(self._as_fault)

    def _tell_unknown(self, site: str, name: str) -> None:
        """Say at the first start, and not when it fails, what the script's text does not show."""
        try:
            if not self._is_only(site, name):
                self._notice(Reason.UNNAMED_QUERY, messages.unnamed_unknown(name, site), True)
        except Exception as error:  # whatever is in the script's files: nothing depends on it
            log.warning("query %r: whether it is the only one without a name is not known: %s", name, error)
