"""Gives a new checkpoint at each start to a query that Spark cannot continue. Talks to the JVM and the store.

Spark starts the sink ``memory`` without recovery unless its mode is complete (``DataStreamWriter``), and then refuses a
checkpoint with offsets (``ResolveWriteToStream``). ``TextSocketMicroBatchStream`` numbers its offsets from 0 in each
process, and the query then fails ("Offsets committed out of order") or reads nothing.

The checkpoint is in the lineage; snapshots leave it out unless the application has no other query. A former checkpoint
of the query that could be continued gets a note that it is not any more.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable

from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.object_paths import (
    EMPTY_START,
    LEFT_AFTER,
    checkpoint_directory,
    is_number,
    number_of_start,
    start_directory,
)
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.sinks.file_sinks import FORMATS, SinkRefusedError
from tidegate_spark.queries.writers import sources_of
from tidegate_spark.snapshots.checkpoint.query_logs import COMMITS
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.repository import SnapshotRepository

MEMORY, COMPLETE = "memory", "complete"
SOCKET = frozenset({"TextSocketTable"})
"""Spark's class of the source ``socket``."""

log = logging.getLogger("tidegate")


def why_empty(kind: str, mode: str, sources: set[str]) -> str:
    """Return why Spark cannot continue a query, empty if it can. Pure.

    Args:
        kind: the format that it writes in.
        mode: its output mode, in lower case.
        sources: as :func:`tidegate_spark.queries.writers.sources_of`.
    """
    if kind == MEMORY and mode != COMPLETE:
        return messages.MEMORY_FORGETS
    return messages.SOCKET_FORGETS if sources & SOCKET else ""


class EmptyStarts:
    """Where the queries of one driver process have their checkpoints."""

    def __init__(self, config: DriverConfig, connect: Callable[[], SnapshotRepository], progress: Progress) -> None:
        """Prepare; ``connect`` reaches the application's storage."""
        self._config, self._connect, self._progress = config, connect, progress
        # Unique, because only one process runs at a time.
        self._starts = itertools.count(time.time_ns() // 1_000_000)

    def directory_of(self, writer: DataStreamWriter, name: str, kind: str, mode: str) -> str:
        """Return the name of the directory of a query's checkpoint; if it is a new one, say why.

        Raises:
            SinkRefusedError: it writes files, and Spark leaves out batches whose numbers the sink's log has.
        """
        try:
            why = why_empty(kind, mode, sources_of(writer))
        except Exception as error:  # whatever Py4J raises: a Spark with other plans says itself what it cannot continue
            log.warning("query %r: whether Spark can continue it is not known: %s", name, error)
            why = why_empty(kind, mode, set())
        if why and kind.lower() in FORMATS:
            raise SinkRefusedError(messages.empty_into_files(why))
        if why:
            return self.start(name, why)
        self._progress.query_continues(name)
        return self.go_on(name)

    def start(self, name: str, why: str) -> str:
        """Return the directory of a query that starts empty, and remove those of its starts before the last one."""
        directory = start_directory(name, next(self._starts))
        self._progress.query_starts_empty(name)
        self._progress.notice(Reason.STARTS_EMPTY, messages.starts_empty(name, why), warning=True)
        try:
            repository = self._connect()
            self._remove_earlier(repository, name)
            self._leave(repository, name)
        except Exception as error:  # whatever the store's client raises: it is done again at the next start
            log.warning("query %r: checkpoints of earlier starts are not removed: %s", name, error)
        return directory

    def go_on(self, name: str) -> str:
        """Return the directory of a query that continues, and take back that it was left."""
        directory = checkpoint_directory(name)
        try:
            repository = self._connect()
            notes = repository.lineage_key(self._config.lineage, directory, LEFT_AFTER) + "/"
            left = [entry.key for entry in repository.store.list(notes)]
            if left:
                repository.store.delete(left)
        except Exception as error:  # likewise; and with the query's next batch the checkpoint is no longer left
            log.warning("query %r: its checkpoint still counts as left: %s", name, error)
        return directory

    def _leave(self, repository: SnapshotRepository, name: str) -> None:
        """Note that a checkpoint which the query had when it continued, or of a release before, is none any more.

        It stays: whoever lets the query continue again does so there.
        """
        directory = checkpoint_directory(name)
        commits = repository.lineage_key(self._config.lineage, directory, COMMITS) + "/"
        batches = [entry.key[len(commits) :] for entry in repository.store.list(commits)]
        newest = max((int(batch) for batch in batches if is_number(batch)), default=-1)
        if newest >= 0:
            repository.store.put(repository.lineage_key(self._config.lineage, directory, LEFT_AFTER, str(newest)), b"")

    def _remove_earlier(self, repository: SnapshotRepository, name: str) -> None:
        root = repository.lineage_key(self._config.lineage) + "/"
        pinned = (
            upgrade_pin.noted(repository, self._config.pin.snapshot) if self._config.pin is not None else frozenset()
        )
        listed = repository.store.list(f"{root}{checkpoint_directory(name)}{EMPTY_START}")
        directories = {entry.key: entry.key[len(root) :].partition("/")[0] for entry in listed}
        # The last one stays: it shows a claim that there are queries whose batches start again.
        kept = pinned | {max(directories.values(), key=number_of_start, default="")}
        going = [key for key, directory in directories.items() if directory not in kept]
        # In reverse order, so that stores that keep objects as files find their directories empty.
        repository.store.delete(sorted(going, reverse=True))
