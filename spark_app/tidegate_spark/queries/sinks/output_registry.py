"""Notes where an application's queries write, and refuses a fork's query that would write there. I/O by the store.

A note that cannot be written is logged, and prevents no start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.queries.sinks.outputs import Output, Outputs, refusal
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.store import naming_newer

OUTPUTS_FILE = "outputs.json"
"""Object below the application's prefix: where its queries write."""
ORIGIN_FILE = "origin.json"
"""Object below the application's prefix: where those of the application wrote with whose snapshot it began."""

log = logging.getLogger("tidegate")


class OutputRegistry:
    """The outputs of one driver process, and of the application that it began with."""

    def __init__(
        self, config: DriverConfig, connect: Callable[[], SnapshotRepository], original: Outputs | None = None
    ) -> None:
        """Prepare.

        Args:
            config: of the driver.
            connect: reaches the application's storage.
            original: where no query may write.
        """
        self._connect, self._original = connect, original
        self._lock = threading.Lock()
        self._own = Outputs(config.storage.uri, config.program)
        self._has_earlier = False

    def refusal_of(self, name: str, output: Output | None) -> str:
        """Return why a query must not start, empty if it may; it is noted then.

        Args:
            name: the query's.
            output: where it writes, None: nowhere.
        """
        with self._lock:
            if output is None or self._own.queries.get(name) == output:
                return ""
            why = refusal(name, output, self._own.program, self._original) if self._original is not None else ""
            if not why:
                self._own = replace(self._own, queries={**self._own.queries, name: output})
                self._note()
            return why

    def _note(self) -> None:
        try:
            repository = self._connect()
            # What the process before it noted stays: a fork may begin before each query of this one has started.
            noted = replace(self._own, queries={**self._earlier(repository), **self._own.queries})
            self._own, self._has_earlier = noted, True
            repository.store.put(repository.key(OUTPUTS_FILE), to_json(noted).encode())
        except Exception as error:  # whatever it is: nothing that runs now depends on it
            log.warning("where the queries write is not noted: %s", error, extra={"action": "note-outputs"})

    def _earlier(self, repository: SnapshotRepository) -> dict[str, Output]:
        """Return what an earlier process of this very program noted; another one's queries are not this one's."""
        found = None if self._has_earlier else read_outputs(repository, OUTPUTS_FILE)
        return found.queries if found is not None and found.program == self._own.program != "" else {}


def read_outputs(repository: SnapshotRepository, name: str) -> Outputs | None:
    """Return what was noted in an object of an application's place, None if nothing was that can be read.

    Raises:
        NewerStorageError: a newer Tidegate wrote it; who would go by nothing might write where it forbids to.
        Exception: what the store's client raises.
    """
    found = repository.store.get(repository.key(name))
    if found is None:
        return None
    try:
        with naming_newer(repository.key(name)):
            return from_stored(Outputs, found[0])
    except ValueError as error:
        log.warning("%s: %s", repository.key(name), error, extra={"action": "note-outputs"})
        return None


def take_along(origin: SnapshotRepository, own: SnapshotRepository) -> None:
    """Keep, in the place of an application that begins, where those write whose snapshot it starts from.

    Raises what the store's clients raise.
    """
    found = read_outputs(origin, OUTPUTS_FILE)
    if found is not None:
        own.store.put(own.key(ORIGIN_FILE), to_json(found).encode())
