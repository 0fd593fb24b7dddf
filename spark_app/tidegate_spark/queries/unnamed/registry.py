"""Says what the unnamed queries of one driver process are called, and notes it before they start. I/O: the store."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.unnamed import script_text
from tidegate_spark.queries.unnamed.naming import Known, UndecidedError, digest_of, name_for
from tidegate_spark.snapshots.checkpoint.query_logs import OFFSETS
from tidegate_spark.storage import location_notes
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.store import NewerStorageError


class UnnamedQueries:
    """The unnamed queries of one driver process."""

    def __init__(
        self,
        lineage: int,
        connect: Callable[[], AppObjects],
        is_only: Callable[[str, str], bool] = script_text.is_only,
    ) -> None:
        """Prepare.

        Args:
            lineage: the process runs in it.
            connect: reaches the application's storage.
            is_only: as :func:`tidegate_spark.queries.unnamed.script_text.is_only`.
        """
        self._lineage, self._connect, self._is_only = lineage, connect, is_only
        self._lock = threading.Lock()
        self._started: set[str] = set()
        self._supposed = ""
        self._digest_before: str | None = None
        """What was noted of the query that is taken for the only one."""

    def name(self, site: str, location: str, others: frozenset[str]) -> str:
        """Return what a query is called that is about to start; from now on it counts as started.

        Args:
            site: file and line of its start.
            location: that the script gave it, empty if it gave none.
            others: names of the queries that were started in this process.

        Raises:
            UndecidedError: it may be one query or another, or the notes are damaged.
            NewerStorageError: a newer Tidegate wrote the notes.
            Exception: what the store's client raises.
        """
        with self._lock:
            objects = self._connect()
            noted = self._read(objects)

            def has_state(name: str) -> bool:
                batches = objects.lineage_key(self._lineage, name, OFFSETS) + "/"
                return next(iter(objects.store.list(batches)), None) is not None

            started = others.union(self._started)
            known = Known(noted, started, has_state, functools.partial(self._is_only, site), self._supposed)
            try:
                named = name_for(location, known)
            except UndecidedError:
                self._take_back(objects, noted)
                raise
            if noted.get(named.name) != digest_of(location):
                location_notes.write(objects, self._lineage, {**noted, named.name: digest_of(location)})
            self._started.add(named.name)
            if named.supposed:
                self._supposed, self._digest_before = named.name, noted.get(named.name)
            return named.name

    def _read(self, objects: AppObjects) -> dict[str, str]:
        try:
            return location_notes.read(objects, self._lineage)
        except NewerStorageError:
            raise
        except ValueError as error:
            key = location_notes.notes_key(objects, self._lineage)
            raise UndecidedError(messages.notes_damaged(key, error)) from error

    def _take_back(self, objects: AppObjects, noted: dict[str, str]) -> None:
        """Note again what was noted of a query that was taken for the only one, and is not."""
        if self._supposed not in noted:
            return
        kept = {name: digest for name, digest in noted.items() if name != self._supposed}
        before = {} if self._digest_before is None else {self._supposed: self._digest_before}
        location_notes.write(objects, self._lineage, {**kept, **before})
