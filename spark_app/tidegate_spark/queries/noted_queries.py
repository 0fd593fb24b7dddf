"""Whether a named query has the location of another one: the same query under another name. I/O by the store.

Spark goes by the location, Tidegate by the name. A script whose query is called after the time of its run, and has one
location, would start without state at each run, and a file sink would leave its first batches out.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.noting import ONE_AT_A_TIME, has_state, of_storage, until_noted
from tidegate_spark.queries.unnamed.naming import digest_of
from tidegate_spark.storage import location_notes
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.location_notes import DamagedNotesError, LocationNotes
from tidegate_spark.storage.store import NewerStorageError

log = logging.getLogger("tidegate")


def refusal(
    notes: LocationNotes, name: str, digest: str, has_begun: Callable[[str], bool], has_own: Callable[[str], bool]
) -> str:
    """Return why a named query must not start with a location, empty if it may. Asks no more than it must.

    Args:
        notes: of the lineage.
        name: the query's.
        digest: of its location.
        has_begun: asks whether there is something of another query that this one may be meant to continue.
        has_own: asks whether the query has state of its own.
    """
    others = [other for other in (*notes.named_at(digest), *notes.unnamed_at(digest)) if other != name]
    if not others:
        return ""
    known, state = notes.of_named(name), has_own(name)
    # From before locations were noted, or noted already: two queries that have had one location all along go on.
    if state and (known is None or known.location == digest):
        return ""
    of = next(filter(has_begun, others), None)
    if of is None:
        return ""
    return messages.location_taken(of) if state else messages.location_of_another(of)


class NotedQueries:
    """The named queries of one driver process, as far as they have locations."""

    def __init__(
        self,
        lineage: int,
        connect: Callable[[], AppObjects],
        *,
        as_fault: Callable[[Exception], Exception] = lambda error: error,
    ) -> None:
        """Prepare.

        Args:
            lineage: the process runs in it.
            connect: reaches the application's storage.
            as_fault: as :func:`tidegate_spark.queries.noting.of_storage`.
        """
        self._lineage, self._connect, self._as_fault = lineage, connect, as_fault
        self._lock = ONE_AT_A_TIME
        self._noted: dict[str, str] = {}
        """Name -> digest, of those that this process has noted."""

    def refusal_of(self, name: str, location: str, runs: Callable[[str], bool]) -> str:
        """Return why a named query must not start, empty if it may: then its location is noted.

        Args:
            name: the query's.
            location: that the script gave it, empty if it gave none.
            runs: asks whether this process runs, or starts, a query of a name.

        Raises:
            DamagedNotesError: what is noted cannot be read, and the query is a new one.
            NewerStorageError: a newer Tidegate wrote it, likewise.
            FaultError: the storage does not answer as it should.
        """
        digest = digest_of(location)
        with self._lock:
            if not digest or self._noted.get(name) == digest:  # the storage, which may fail, is asked for nothing
                return ""
            with of_storage(self._as_fault):
                return until_noted(lambda: self._try(name, digest, runs))

    def _try(self, name: str, digest: str, runs: Callable[[str], bool]) -> str | None:
        """Return what :meth:`refusal_of` returns; None if another process noted something meanwhile."""
        objects = self._connect()
        begun = functools.partial(has_state, objects, self._lineage)
        try:
            notes, etag = location_notes.read(objects, self._lineage)
        except (DamagedNotesError, NewerStorageError) as error:
            if not begun(name):
                raise
            log.warning("query %r continues by its name; its location is not noted: %s", name, error)
            return ""
        why = refusal(notes, name, digest, lambda other: runs(other) or begun(other), begun)
        if why:
            return why
        after = notes.with_named(name, digest)
        if after != notes and not location_notes.write_if(objects, self._lineage, after, etag):
            return None
        # Whoever had the location before is asked again: its state may be another one's by then.
        self._noted = {other: of for other, of in self._noted.items() if of != digest}
        self._noted[name] = digest
        return ""
