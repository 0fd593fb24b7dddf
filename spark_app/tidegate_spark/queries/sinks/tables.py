"""Tables of ``toTable``: their catalog and data, and whether Spark can continue a query into one. Talks to the JVM.

A script's session catalog is in memory unless configured otherwise, so after a restart the table is unknown and Spark
refuses to create it over existing files (LOCATION_ALREADY_EXISTS) unless the writer names a path. So the query gets a
path of its own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.protocol import WORK_DIRECTORY
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries.sinks import table_messages as messages
from tidegate_spark.queries.sinks.file_sinks import (
    FORMATS,
    METADATA,
    Sink,
    SinkRefusedError,
    batch_in,
    is_queries_own,
    names_in,
    newest_in,
)

SESSION_CATALOG = "spark_catalog"
IN_MEMORY = "in-memory"
_IMPLEMENTATION = "spark.sql.catalogImplementation"
_METASTORE, _DATABASE = "hive.metastore.uris", "javax.jdo.option.ConnectionURL"

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Table:
    """A table that a query is about to write to, as its catalog knows it or would create it."""

    name: str
    """With catalog and namespace."""
    catalog: str
    """Where the catalog is, as text."""
    lasts: bool
    """Whether the catalog is known to outlast the driver; of one that is not Spark's own that is not known."""
    provider: str
    """The format of its data, in lower case."""
    location: str
    """Its folder; empty if its catalog says none."""
    exists: bool
    own_path: bool = False
    """Whether the script names the path."""
    managed: bool = False
    """Whether it was created without a path."""

    @property
    def sink(self) -> Sink | None:
        """The files that a query writes there, None if it writes none of Spark's own file sink."""
        return Sink(self.location) if self.location and self.provider in FORMATS else None


def refusal(table: Table, is_pods_own: Callable[[str], bool]) -> str:
    """Return why no query may write to a table, empty if one may.

    Args:
        table: which.
        is_pods_own: returns whether a folder is of one pod alone.
    """
    if table.sink is not None and is_pods_own(table.location):
        return messages.table_in_pod(table.name, table.location)
    if table.lasts or table.exists or table.own_path or table.sink is not None:
        return ""
    return messages.table_without_catalog(table.name, table.provider, table.catalog)


def is_elsewhere(commits: Iterable[str], entries: Iterable[str] | None) -> bool:
    """Return whether a query has put its earlier batches out elsewhere: it has some, and its sink's log has none. Pure.

    Args:
        commits: names in the query's commit log.
        entries: names in the log of the sink, None if there is no log.
    """
    return any(map(str.isdigit, commits)) and all(batch_in(name) is None for name in entries or ())


def folder_of_pod(location: str) -> str:
    """Return the folder in the driver's pod that a location is, empty if it is elsewhere. Pure."""
    scheme, found, rest = location.partition(":")
    if not found or scheme.lower() != "file":
        return "" if found else location
    return "/" + rest.lstrip("/")


_EACH_PODS = frozenset({"/", "/tmp", WORK_DIRECTORY})  # noqa: S108 - a mount


def is_mounted(folder: str) -> bool:
    """Return whether a folder is, or will be, on a volume of the driver's pod: whoever mounted it shares it.

    Not so Tidegate's own volumes for scratch, which each pod has for itself.
    """
    return any(os.path.ismount(path) for path in (Path(folder), *Path(folder).parents) if str(path) not in _EACH_PODS)


class Tables:
    """Looks at the tables of one driver's queries before they start."""

    def __init__(
        self,
        session: SparkSession,
        notice: Callable[[str, str, bool], None],
        roll_back: Callable[[SparkSession, str, Sink], None] | None,
        *,
        apart: bool,
        pinned: bool,
    ) -> None:
        """Prepare.

        Args:
            session: the Spark session.
            notice: gives the user a notice once: reason, message, whether it is a warning.
            roll_back: called with session, checkpoint and a file sink that may know batches of another history.
            apart: executors have folders of their own.
            pinned: this is the first launch of a version.
        """
        self._session, self._notice, self._roll_back = session, notice, roll_back
        self._apart, self._pinned = apart, pinned

    def before_query(self, writer: DataStreamWriter, query: str, checkpoint: str, table: str, given: Given) -> None:
        """Prepare a table for a query that is about to write to it; say where it is.

        Args:
            writer: starts it.
            query: its name.
            checkpoint: its location.
            table: as the script names it.
            given: what else the script says of it.

        Raises:
            SinkRefusedError: the query must not start.
        """
        try:
            found = find(writer, table, given)
        except Exception as error:  # whatever Py4J raises: Spark says itself what it does not find
            log.warning("query %r: where table %s is, is not known: %s", query, table, error)
            return
        why = refusal(found, self._is_pods_own)
        if why:
            raise SinkRefusedError(why)
        if found.sink is not None and self._roll_back is not None:
            self._roll_back(writer._spark, checkpoint, found.sink)
        last = newest_in(names_in(writer._spark, f"{checkpoint}/offsets") or ())
        moved = False
        if found.sink is not None:
            log_names = names_in(writer._spark, f"{found.location.rstrip('/')}/{METADATA}")
            if not is_queries_own(log_names or (), last):
                raise SinkRefusedError(messages.table_of_another_query(found.name, found.location))
            if log_names is not None and not found.exists and not found.own_path:
                writer.option("path", found.location)
            moved = is_elsewhere(names_in(writer._spark, f"{checkpoint}/commits") or (), log_names)
        if last < 0 or self._pinned or moved:
            self._say(query, found, moved=moved)

    def _say(self, query: str, table: Table, *, moved: bool) -> None:
        created = table.exists and table.managed and not table.lasts
        message = messages.table_location(query, table.name, table.catalog, table.location)
        if created:
            message += messages.table_created_by_script(table.location)
        if moved:
            message += messages.TABLE_WITHOUT_BATCHES
        self._notice(Reason.TABLE_LOCATION, message, created or moved)

    def _is_pods_own(self, location: str) -> bool:
        folder = folder_of_pod(location)
        return bool(folder) and self._apart and not is_mounted(folder)


@dataclass(frozen=True)
class Given:
    """What a script says of a table."""

    kind: str
    """The format."""
    path: str = ""


def find(writer: DataStreamWriter, name: str, given: Given) -> Table:
    """Return what Spark will find, or create, under the name of a table; asks the JVM, which asks the catalog."""
    spark: Any = writer._spark
    state = spark._jsparkSession.sessionState()
    resolved = state.analyzer().CatalogAndIdentifier().unapply(state.sqlParser().parseMultipartIdentifier(name)).get()
    catalog, identifier = resolved._1(), resolved._2()
    namespace = [str(part) for part in identifier.namespace()]
    full = ".".join([str(catalog.name()), *namespace, str(identifier.name())])
    kind = str(catalog.getClass().getName())
    if str(catalog.name()) != SESSION_CATALOG:
        exists = bool(catalog.tableExists(identifier))
        place = str(catalog.loadTable(identifier).properties().get("location") or "") if exists else given.path
        return Table(full, messages.catalog_of_class(kind), True, given.kind.lower(), place, exists, bool(given.path))
    message, lasts = _session_catalog(spark)
    quoted = ".".join(f"`{part.replace('`', '``')}`" for part in (*namespace[-1:], str(identifier.name())))
    known, plain = state.catalog(), state.sqlParser().parseTableIdentifier(quoted)
    if not known.tableExists(plain):
        place = given.path or _text(spark, known.defaultTablePath(plain))
        return Table(full, message, lasts, given.kind.lower(), place, exists=False, own_path=bool(given.path))
    found = known.getTableMetadata(plain)
    provider = str(found.provider().get()) if found.provider().isDefined() else given.kind
    managed = str(found.tableType().name()) == "MANAGED"
    return Table(full, message, lasts, provider.lower(), _text(spark, found.location()), exists=True, managed=managed)


def _session_catalog(spark: SparkSession) -> tuple[str, bool]:
    """Return where the session catalog is, as text, and whether it outlasts the driver."""
    if (spark.conf.get(_IMPLEMENTATION, IN_MEMORY) or IN_MEMORY) == IN_MEMORY:
        return messages.CATALOG_IN_MEMORY, False
    hadoop: Any = spark._jsparkSession.sessionState().newHadoopConf()
    metastore, database = (str(hadoop.get(key) or "") for key in (_METASTORE, _DATABASE))
    if metastore or (database and ":derby:" not in database):
        return messages.metastore(metastore), True
    return messages.CATALOG_IN_DERBY, False


def _text(spark: Any, uri: Any) -> str:
    # As Spark writes a location where it is an option: without what an address escapes.
    return str(spark._jvm.org.apache.hadoop.fs.Path(uri).toString())
