"""Reads what a script has set on a query's writer: format, mode, options, sources. Asks the JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

REAL_TIME = "RealTimeTrigger"
"""Spark's class of the trigger; it is in no Spark before 4.1."""
_GIVEN = "_tidegate_given"


def writer_options(writer: DataStreamWriter) -> dict[str, str]:
    """Return the options set on ``writer`` so far, keys in lower case; the query's name is one of them."""
    options = _field(writer, "extraOptions").iterator()
    found: dict[str, str] = {}
    while options.hasNext():
        pair = options.next()
        found[str(pair._1()).lower()] = pair._2()
    return found


def scripts_options(writer: DataStreamWriter) -> dict[str, str]:
    """Return the options that the script has set on ``writer`` so far: without what :func:`give_place` has."""
    options = writer_options(writer)
    for key, (ours, scripts_own) in getattr(writer, _GIVEN, {}).items():
        if options.get(key) == ours:
            del options[key]
            options |= {} if scripts_own is None else {key: scripts_own}
    return options


def give_place(writer: DataStreamWriter, name: str, location: str, scripts_own: Mapping[str, str | None]) -> None:
    """Set the name and the checkpoint of ``writer``'s query.

    Both stay on the writer. A script may start it again, and then asks for what it asked for the first time.

    Args:
        writer: of the query.
        name: of the query.
        location: of its checkpoint.
        scripts_own: what the script has for the two, by their keys in lower case.
    """
    writer.queryName(name).option("checkpointLocation", location)
    given = {"queryname": name, "checkpointlocation": location}
    setattr(writer, _GIVEN, {key: (ours, scripts_own.get(key)) for key, ours in given.items()})


def writer_format(writer: DataStreamWriter) -> str:
    """Return the format that was set on ``writer``, or Spark's default."""
    return str(_field(writer, "source"))


def writer_mode(writer: DataStreamWriter) -> str:
    """Return the output mode that was set on ``writer``, or Spark's default, in lower case."""
    return str(output_mode(writer).toString()).lower()


def output_mode(writer: DataStreamWriter) -> Any:
    """Return the output mode that was set on ``writer``, or Spark's default, as the JVM's object."""
    return _field(writer, "outputMode")


def is_real_time(writer: DataStreamWriter) -> bool:
    """Return whether ``writer``'s query is to run in real-time mode."""
    return str(_field(writer, "trigger").getClass().getSimpleName()) == REAL_TIME


def texts(options: Mapping[str, Any]) -> dict[str, str | None]:
    """Return options as Spark gets them, keys in lower case."""
    return {key.lower(): None if value is None else str(value) for key, value in options.items()}


def leaves_of(writer: DataStreamWriter) -> list[Any]:
    """Return the leaves of the plan of ``writer``'s query, its sources among them."""
    leaves: Any = writer._df._jdf.queryExecution().analyzed().collectLeaves()
    return [leaves.apply(number) for number in range(leaves.size())]


def sources_of(writer: DataStreamWriter) -> set[str]:
    """Return the names of the classes of tables that the query reads by Spark's second interface for sources."""
    relations = (leaf for leaf in leaves_of(writer) if leaf.getClass().getSimpleName() == "StreamingRelationV2")
    return {str(leaf.table().getClass().getSimpleName()) for leaf in relations}


def _field(writer: DataStreamWriter, name: str) -> Any:
    java_writer: Any = writer._jwrite
    field = java_writer.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java_writer)
