"""Suppresses the effects of streaming queries in a rehearsal. Talks to the JVM.

Queries write to Spark's sink ``noop``, so everything is computed and nothing is put out; foreach and foreachBatch are
not called. Real-time mode has no ``noop``: there, each row goes to a function that does nothing. The sink ``memory``
stays, because its rows stay in the driver. Sources do not clean up files, and Python data sources do not learn of
commits. Other effects of a script are not suppressed.
"""

from __future__ import annotations

import functools
import importlib
import logging
import pkgutil
from collections.abc import Callable
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceRegistration
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from tidegate_spark.queries import source_cleaning
from tidegate_spark.queries.empty_starts import MEMORY
from tidegate_spark.queries.sinks.file_sinks import FORMATS
from tidegate_spark.queries.writers import is_real_time, writer_format

NOOP = "noop"
REAL_TIME_SINKS = frozenset({"console", "foreach", "kafka"})
"""Those that Spark allows in real-time mode; with another one, a query is refused in a rehearsal too, as noop is."""
GROUP = "kafka.group.id"
GROUP_SUFFIX = "-rehearsal"
"""Behind the name of a consumer group: grants by prefix go on to hold."""
_PACKAGES, _SOURCE = "pyspark_", "DefaultSource"
"""Spark registers by itself what such packages have by this name (``pyspark.sql.worker.lookup_data_sources``)."""
_NOT_PYTHONS = FORMATS | {"delta", "iceberg", "kafka", "rate", "rate-micro-batch", "socket"}
"""Formats for which no package is imported that the script has not asked for."""

log = logging.getLogger("tidegate")


def mute(
    format_of: Callable[[DataStreamWriter], str] = writer_format,
    real_time: Callable[[DataStreamWriter], bool] = is_real_time,
) -> None:
    """Change Spark's classes in this process; before anything else wraps them.

    Args:
        format_of: returns the format that was set on a writer.
        real_time: returns whether its trigger is that of real-time mode.
    """
    _mute_writers(format_of, real_time)
    _leave_inputs_alone()
    _withhold_commits_from_sources()
    _withhold_commits_from_found_sources()


def let_files_go(session: Any) -> None:
    """Have queries leave out files that are gone: the running version may clean up what is read here."""
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")


def own_option(key: str, value: Any) -> Any:
    """Return what a rehearsal says to a source instead of an option's value. Pure."""
    if key.lower() == GROUP:
        return f"{value}{GROUP_SUFFIX}"
    return source_cleaning.OFF if key.lower() == source_cleaning.OPTION.lower() else value


def without_commit(source: type[DataSource]) -> type[DataSource]:
    """Return a Python data source whose stream readers do not learn what was committed. Pure."""

    class Rehearsed(source):  # type: ignore[valid-type, misc] # a class that is only known now
        def streamReader(self, schema: Any) -> Any:  # noqa: N802 - Spark's name
            return _without_commits(super().streamReader(schema))

        def simpleStreamReader(self, schema: Any) -> Any:  # noqa: N802 - Spark's name
            return _without_commits(super().simpleStreamReader(schema))

    # A source that gives itself no name is known by that of its class.
    Rehearsed.__name__, Rehearsed.__qualname__ = source.__name__, source.__qualname__
    return Rehearsed


def renamed(source: type[DataSource], name: str) -> type[DataSource]:
    """Return a Python data source under another name. Pure."""

    class Renamed(source):  # type: ignore[valid-type, misc] # a class that is only known now
        @classmethod
        def name(cls) -> str:
            return name

    Renamed.__name__, Renamed.__qualname__ = source.__name__, source.__qualname__
    return Renamed


def _without_commits(reader: Any) -> Any:
    # Past what the reader's own class thinks of it: a frozen dataclass, a property.
    object.__setattr__(reader, "commit", _ignore)
    return reader


def _ignore(end: Any) -> None:
    pass


def _ignore_row(row: Any) -> None:
    pass


def _without_path(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key.lower() != "path"}


def _mute_writers(format_of: Callable[[DataStreamWriter], str], real_time: Callable[[DataStreamWriter], bool]) -> None:
    original = DataStreamWriter.start

    @functools.wraps(original)
    def start(  # noqa: PLR0913, PLR0917 - Spark's signature
        writer: DataStreamWriter,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - Spark's name
        outputMode: str | None = None,  # noqa: N803 - Spark's name
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        queryName: str | None = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> StreamingQuery:
        wanted = format or format_of(writer)
        if wanted == MEMORY:
            return original(writer, path, format, outputMode, partitionBy, queryName, **options)
        if wanted in REAL_TIME_SINKS and real_time(writer):
            return original(writer.foreach(_ignore_row), None, None, outputMode, None, queryName, **options)
        return original(writer, None, NOOP, outputMode, None, queryName, **_without_path(options))

    @functools.wraps(DataStreamWriter.toTable)
    def to_table(  # noqa: PLR0913, PLR0917 - Spark's signature
        writer: DataStreamWriter,
        tableName: str,  # noqa: N803 - Spark's name
        format: str | None = None,  # noqa: A002 - Spark's name
        outputMode: str | None = None,  # noqa: N803 - Spark's name
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        queryName: str | None = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> StreamingQuery:
        if not isinstance(tableName, str):
            raise TypeError(f"tableName must be a string, not {type(tableName).__name__}")
        return original(writer, None, NOOP, outputMode, None, queryName, **_without_path(options))

    DataStreamWriter.start = start  # type: ignore[assignment, method-assign] # the one way to a sink, with the next
    DataStreamWriter.toTable = to_table  # type: ignore[assignment, method-assign] # likewise


def _leave_inputs_alone() -> None:
    original, several = DataStreamReader.option, DataStreamReader.options

    @functools.wraps(original)
    def option(reader: DataStreamReader, key: str, value: Any) -> DataStreamReader:
        return original(reader, key, own_option(key, value))

    @functools.wraps(several)
    def options(reader: DataStreamReader, **given: Any) -> DataStreamReader:
        return several(reader, **{key: own_option(key, value) for key, value in given.items()})

    DataStreamReader.option = option  # type: ignore[assignment, method-assign] # where scripts name a group
    DataStreamReader.options = options  # type: ignore[assignment, method-assign] # likewise


def _withhold_commits_from_sources() -> None:
    original = DataSourceRegistration.register

    @functools.wraps(original)
    def register(registration: DataSourceRegistration, dataSource: type[DataSource]) -> None:  # noqa: N803 - Spark's name
        return original(registration, without_commit(dataSource))

    DataSourceRegistration.register = register  # type: ignore[assignment, method-assign] # the one way to such a source


def _withhold_commits_from_found_sources() -> None:
    """Have readers take what Spark finds by itself from us, under another name: nobody can register its own one."""
    original, found = DataStreamReader.format, functools.cache(_sources_found_by_spark)

    @functools.wraps(original)
    def of_format(reader: DataStreamReader, source: str) -> DataStreamReader:
        name = source.lower() if isinstance(source, str) else ""
        known = found().get(name) if name and name not in _NOT_PYTHONS else None
        if known is None:
            return original(reader, source)
        own = renamed(known, f"{known.name()}{GROUP_SUFFIX}")
        reader._spark.dataSource.register(own)
        return original(reader, own.name())

    DataStreamReader.format = of_format  # type: ignore[assignment, method-assign] # how readers name such a source


def _sources_found_by_spark() -> dict[str, type[DataSource]]:
    """Return the Python data sources that Spark registers by itself, by their names in lower case."""
    found = {}
    try:
        for package in (each.name for each in pkgutil.iter_modules() if each.name.startswith(_PACKAGES)):
            source = getattr(importlib.import_module(package), _SOURCE, None)
            if isinstance(source, type) and issubclass(source, DataSource):
                found[source.name().lower()] = source
    except Exception as error:  # whatever a package raises: Spark then goes without all of them, too
        log.warning("the data sources that Spark finds by itself are not known: %s", error)
        return {}
    return found
