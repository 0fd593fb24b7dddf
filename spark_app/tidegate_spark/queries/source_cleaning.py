"""File sources with ``cleanSource``: off in rehearsals, and reported after a rollback.

Spark deletes or archives a batch's files when it plans the next. A rolled-back lineage lists the folder again and
leaves out, without a message, files that are gone. Talks to the JVM, reads sources' logs by the object store's port.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.object_paths import checkpoint_directory, is_number
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.writers import leaves_of
from tidegate_spark.storage.app_objects import AppObjects

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

OPTION, ARCHIVE_OPTION, OFF = "cleanSource", "sourceArchiveDir", "off"
MOST_LOOKED_AT = 1000
"""Files of which it is asked whether they are there: a request or two for each."""
_COMPACT = ".compact"

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Cleaning:
    """How one source of a query cleans up."""

    how: str
    """``delete`` or ``archive``, as the program says it."""
    archive: str = ""
    """The folder that files are moved to."""


def cleaning_of(options: Iterable[tuple[str, str]]) -> Cleaning | None:
    """Return how a source with these options cleans up, None if it does not. Pure."""
    found = {key.lower(): value for key, value in options}
    how = found.get(OPTION.lower(), OFF)
    if how.lower() == OFF:
        return None
    return Cleaning(how.lower(), found.get(ARCHIVE_OPTION.lower(), ""))


def cleanings(writer: DataStreamWriter) -> list[Cleaning]:
    """Return how the sources of a query clean up that is about to start; asks the JVM.

    The plan says it, not the calls of the program: a table brings options of its own.
    """
    found = map(_cleaning_of_leaf, leaves_of(writer))
    return [cleaning for cleaning in found if cleaning is not None]


def read_after(names: Iterable[str], read: Callable[[str], str], position: int) -> list[str]:
    """Return the files that a file source's log has behind a position, in their order.

    Args:
        names: of the objects in the log's directory.
        read: returns the content of one.
        position: the last entry that is not asked for.
    """
    found: dict[str, None] = {}
    behind = [(int(stem), name) for name in names if is_number(stem := name.removesuffix(_COMPACT))]
    for _, name in sorted(entry for entry in behind if entry[0] > position):
        for path, entry in _entries(read(name)):
            if entry > position:
                found[path] = None
    return list(found)


class SourceCleaning:
    """What one driver process says of sources that clean up."""

    def __init__(
        self,
        config: DriverConfig,
        connect: Callable[[], AppObjects],
        is_there: Callable[[str], bool],
        notice: Callable[[str, str, bool], None],
    ) -> None:
        """Prepare.

        Args:
            config: of the driver.
            connect: reaches the application's storage.
            is_there: returns whether a file of a source is there, by its path as Spark writes it down.
            notice: gives the user a notice once: reason, message, whether it is a warning.
        """
        self._config, self._connect, self._is_there, self._notice = config, connect, is_there, notice

    def before_query(self, writer: DataStreamWriter, name: str) -> str:
        """Say what a query's cleaning means before it starts; return why it must not start, empty if it may."""
        try:
            found = cleanings(writer)
        except Exception as error:  # whatever Py4J raises: a Spark with other plans runs without what is said here
            log.warning("query %r: whether a source cleans up is not known: %s", name, error)
            return ""
        return self.judge(name, found[0]) if found else ""

    def judge(self, name: str, cleaning: Cleaning) -> str:
        """Do so for a query with a source that cleans up."""
        if self._config.rehearsal is not None:
            return messages.cleans_in_rehearsal(OPTION, cleaning.how)
        try:
            repository = self._connect()
            commits = self._names(repository, self._config.lineage, name, "commits")
            begins = sum(is_number(each) for each in commits) <= 1
            if begins:
                self._report_missing(repository, name, cleaning)
        except Exception as error:  # whatever the store's client raises: the query itself will meet the fault
            log.warning("query %r: what its source has cleaned up is not known: %s", name, error)
            begins = True
        if begins or self._config.pin is not None:
            self._notice(Reason.SOURCE_FILES_CLEANED, messages.source_files_cleaned(name, OPTION, cleaning.how), True)
        return ""

    def _report_missing(self, repository: AppObjects, name: str, cleaning: Cleaning) -> None:
        start = self._config.start_from
        if start is None or not start.lineage or start.lineage == self._config.lineage:
            return
        again = self._read_again(repository, name, start.lineage)
        missing = [path for path in again[:MOST_LOOKED_AT] if not self._is_there(path)]
        for path in missing:
            log.warning("query %r: %s is gone", name, path, extra={"action": "rollback"})
        if missing:
            message = messages.source_files_missing(name, OPTION, missing, cleaning.archive)
            self._notice(Reason.SOURCE_FILES_MISSING, message, True)

    def _read_again(self, repository: AppObjects, name: str, before: int) -> list[str]:
        """Return the files that a query read in the lineage that is given up, and in this one not yet."""
        earlier = self._logs(repository, before, name)
        here = self._logs(repository, self._config.lineage, name)
        found: list[str] = []
        for source, names in sorted(earlier.items()):
            stems = (each.removesuffix(_COMPACT) for each in here.get(source, ()))
            position = max((int(stem) for stem in stems if is_number(stem)), default=-1)

            def read(each: str, source: str = source) -> str:
                key = repository.lineage_key(before, checkpoint_directory(name), "sources", source, each)
                body = repository.store.get(key)
                return body[0].decode() if body is not None else ""

            found += read_after(names, read, position)
        return found

    def _logs(self, repository: AppObjects, lineage: int, name: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self._names(repository, lineage, name, "sources"):
            source, _, entry = path.partition("/")
            if entry:
                found.setdefault(source, []).append(entry)
        return found

    def _names(self, repository: AppObjects, lineage: int, name: str, directory: str) -> list[str]:
        prefix = repository.lineage_key(lineage, checkpoint_directory(name), directory) + "/"
        return [entry.key[len(prefix) :] for entry in repository.store.list(prefix)]


def file_checker(session: Any) -> Callable[[str], bool]:
    """Return a function that returns whether a file is there, by Hadoop's file systems as the session knows them."""
    hadoop = session._jsc.hadoopConfiguration()

    def is_there(path: str) -> bool:
        # Spark writes paths down as URIs, with what is special in them escaped.
        place = session._jvm.org.apache.hadoop.fs.Path(session._jvm.java.net.URI(path))
        return bool(place.getFileSystem(hadoop).exists(place))

    return is_there


def _cleaning_of_leaf(leaf: Any) -> Cleaning | None:
    # Sources of Spark's second interface are none of files.
    if leaf.getClass().getSimpleName() != "StreamingRelation":
        return None
    options = leaf.dataSource().options().iterator()
    pairs: list[tuple[str, str]] = []
    while options.hasNext():
        pair = options.next()
        pairs.append((str(pair._1()), str(pair._2())))
    return cleaning_of(pairs)


def _entries(text: str) -> list[tuple[str, int]]:
    """Return path and number of each entry of an object of a file source's log; none of another source's."""
    found = []
    for line in text.split("\n")[1:]:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("path"), str) and isinstance(entry.get("batchId"), int):
            found.append((entry["path"], entry["batchId"]))
    return found
