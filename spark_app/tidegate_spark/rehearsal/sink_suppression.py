"""Suppresses the effects of streaming queries in a rehearsal. Talks to the JVM.

Queries write to Spark's sink ``noop``, so everything is computed and nothing is put out; foreach and foreachBatch are
not called. The sink ``memory`` stays, because its rows stay in the driver. Sources do not clean up files, and Python
data sources are not told of commits. Other effects of a script are not suppressed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceRegistration
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from tidegate_spark.queries import source_cleaning
from tidegate_spark.queries.empty_starts import MEMORY
from tidegate_spark.queries.writers import writer_format

NOOP = "noop"
GROUP = "kafka.group.id"
GROUP_SUFFIX = "-rehearsal"
"""Behind the name of a consumer group: grants by prefix go on to hold."""


def mute(format_of: Callable[[DataStreamWriter], str] = writer_format) -> None:
    """Change Spark's classes in this process; before anything else wraps them.

    Args:
        format_of: returns the format that was set on a writer.
    """
    _mute_writers(format_of)
    _leave_inputs_alone()
    _withhold_commits_from_sources()


def let_files_go(session: Any) -> None:
    """Have queries leave out files that are gone: the running version may clean up what is read here."""
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")


def own_option(key: str, value: Any) -> Any:
    """Return what a rehearsal says to a source instead of an option's value. Pure."""
    if key.lower() == GROUP:
        return f"{value}{GROUP_SUFFIX}"
    return source_cleaning.OFF if key.lower() == source_cleaning.OPTION.lower() else value


def without_commit(source: type[DataSource]) -> type[DataSource]:
    """Return a Python data source whose stream readers are not told what was committed. Pure."""

    class Rehearsed(source):  # type: ignore[valid-type, misc] # a class that is only known now
        def streamReader(self, schema: Any) -> Any:  # noqa: N802 - Spark's name
            return _without_commits(super().streamReader(schema))

        def simpleStreamReader(self, schema: Any) -> Any:  # noqa: N802 - Spark's name
            return _without_commits(super().simpleStreamReader(schema))

    # A source that gives itself no name is known by that of its class.
    Rehearsed.__name__, Rehearsed.__qualname__ = source.__name__, source.__qualname__
    return Rehearsed


def _without_commits(reader: Any) -> Any:
    # Past what the reader's own class thinks of it: a frozen dataclass, a property.
    object.__setattr__(reader, "commit", _ignore)
    return reader


def _ignore(end: Any) -> None:
    pass


def _mute_writers(format_of: Callable[[DataStreamWriter], str]) -> None:
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
        if (format or format_of(writer)) == MEMORY:
            return original(writer, path, format, outputMode, partitionBy, queryName, **options)
        return to_noop(writer, outputMode, queryName, options)

    def to_noop(
        writer: DataStreamWriter, mode: str | None, name: str | None, options: dict[str, Any]
    ) -> StreamingQuery:
        kept = {key: value for key, value in options.items() if key.lower() != "path"}
        return original(writer, None, NOOP, mode, None, name, **kept)

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
        return to_noop(writer, outputMode, queryName, options)

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
