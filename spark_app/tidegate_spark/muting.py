"""In a rehearsal, what streaming queries put out goes nowhere, whatever their sink. Talks to the JVM.

Each query writes to Spark's sink ``noop``, which takes the rows and forgets them; so everything is computed that would
be, sources are read and state is kept. Functions of foreachBatch and foreach are part of a sink and not called. Nothing
else of a script is changed: its other functions do what they do, and so does it beside its queries.
"""

from __future__ import annotations

import functools
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

NOOP = "noop"
GROUP = "kafka.group.id"
GROUP_SUFFIX = "-rehearsal"
"""Behind the name of a consumer group: grants by prefix go on to hold."""


def mute() -> None:
    """Change Spark's classes in this process; before anything else wraps them."""
    _mute_writers()
    _leave_consumer_groups_alone()


def own_group(key: str, value: Any) -> Any:
    """Return what a rehearsal says to Kafka instead of an option's value. Pure."""
    return f"{value}{GROUP_SUFFIX}" if key.lower() == GROUP else value


def _mute_writers() -> None:
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
        kept = {key: value for key, value in options.items() if key.lower() != "path"}
        return original(writer, None, NOOP, outputMode, None, queryName, **kept)

    @functools.wraps(DataStreamWriter.toTable)
    def to_table(writer: DataStreamWriter, tableName: str, *arguments: Any, **options: Any) -> StreamingQuery:  # noqa: N803 - Spark's name
        if not isinstance(tableName, str):
            raise TypeError(f"tableName must be a string, not {type(tableName).__name__}")
        kept = {key: value for key, value in options.items() if key.lower() != "path"}
        return start(writer, None, *arguments, **kept)

    DataStreamWriter.start = start  # type: ignore[assignment, method-assign] # the one way to a sink, with the next
    DataStreamWriter.toTable = to_table  # type: ignore[assignment, method-assign] # likewise


def _leave_consumer_groups_alone() -> None:
    original, several = DataStreamReader.option, DataStreamReader.options

    @functools.wraps(original)
    def option(reader: DataStreamReader, key: str, value: Any) -> DataStreamReader:
        return original(reader, key, own_group(key, value))

    @functools.wraps(several)
    def options(reader: DataStreamReader, **given: Any) -> DataStreamReader:
        return several(reader, **{key: own_group(key, value) for key, value in given.items()})

    DataStreamReader.option = option  # type: ignore[assignment, method-assign] # where scripts name a group
    DataStreamReader.options = options  # type: ignore[assignment, method-assign] # likewise
