"""The functions with which a script starts a new query from an export: state and offsets. Talks to Spark.

The script's own session reads the export, so it may be anywhere that session can read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from tidegate_spark.contract.object_paths import has_detour
from tidegate_spark.contract.protocol import EXPORT_VARIABLE
from tidegate_spark.exports import formats, messages, source_offsets, use
from tidegate_spark.exports.errors import ExportError
from tidegate_spark.exports.manifest import MANIFEST_FILE, ExportedQuery, ExportedTable, ExportManifest, parse
from tidegate_spark.exports.tables import LIST, MAP, TIMERS, TIMERS_NAME, VALUE, has_named_state, quoted
from tidegate_spark.exports.use import Part
from tidegate_spark.process.faults.foreign_text import first_line

_EXPIRES = "ttlExpirationMs"


def initial_state(
    spark: SparkSession, *, query: str | None = None, operator: int | None = None, export: str | None = None
) -> DataFrame:
    """Return the state of a transformWithState as one row for each key, as ``initialState`` of a new one takes it.

    The columns are those of the key and one for each state variable, null where a key has none: a value is a struct, a
    list an array of structs, a map an array of structs with ``key`` and ``value``, ``$timers`` an array of times in
    milliseconds. What had outlived its time to live at the export's batch is left out; what had not begins to live
    again when it is put into a variable again.

    Args:
        spark: the session.
        query: the query's name; needed if the export has several.
        operator: the operator's number; needed if the query has several that start with such a state.
        export: of its manifest, the address; the application's ``spec.startFrom.exportedState`` if it is not said.

    Raises:
        ExportError: there is no such export or state, or the operator is none that Spark can start from a state.
    """
    opened = _open(spark, export)
    of = opened.query(query)
    tables = _named(opened, of, operator)
    use.note(Part.STATE, opened.made)
    at = opened.made.queries[of]
    key = _schema(tables[0])["key"].dataType
    assert isinstance(key, StructType)
    keys = key.names
    taken = {name.lower() for name in keys}
    for table in tables:
        if table.name.lower() in taken:
            raise ExportError(
                f"state variable {table.name!r} of query {of!r} is called as a column of the key, or another variable, "
                "is (to Spark capitals make no difference): read both with exported_state(), and put them together "
                "under other names"
            )
        taken.add(table.name.lower())
    parts = [_by_key(opened.rows(table), table, at) for table in tables]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    state = [F.first(F.col(quoted(table.name)), ignorenulls=True).alias(table.name) for table in tables]
    together = whole.groupBy("key").agg(*state)
    return together.select(
        *(F.col("key").getField(name).alias(name) for name in keys), *(F.col(quoted(table.name)) for table in tables)
    )


def exported_state(
    spark: SparkSession,
    name: str | None = None,
    *,
    query: str | None = None,
    operator: int | None = None,
    export: str | None = None,
) -> DataFrame:
    """Return the rows of one table of an export, with their types, as Spark's state reader gave them.

    Args:
        spark: the session.
        name: of the state variable, side of a join (``left``, ``right``) or store; needed if there are several.
        query: the query's name; needed if the export has several.
        operator: the operator's number; needed if several have such a table.
        export: see :func:`initial_state`.

    Raises:
        ExportError: there is no such export or state, or several fit.
    """
    opened = _open(spark, export)
    of = opened.query(query)
    fitting = [
        table for table in opened.tables(of) if name in (None, table.name) and operator in (None, table.operator)
    ]
    if len(fitting) != 1:
        what = f"query {of!r}, operator {'*' if operator is None else operator}, name {name or '*'}"
        many = "several tables fit" if fitting else "there is no such table"
        raise ExportError(f"{many} ({what}): {opened.uri} has {_list_tables(opened.tables(of))} (operator/name)")
    use.note(Part.STATE, opened.made)
    return opened.rows(fitting[0])


def starting_offsets(
    spark: SparkSession,
    *,
    query: str | None = None,
    source: str | int | None = None,
    partitions: Mapping[str, int] | None = None,
    export: str | None = None,
) -> str:
    """Return the value of ``startingOffsets`` with which a Kafka source goes on after the export's batch.

    Args:
        spark: the session.
        query: the query's name; needed if the export has several.
        source: its number in the query, from 0, or its name; needed if the query had several of Kafka's.
        partitions: by topic, how many partitions there are now; those that came since are read from their beginning.
        export: see :func:`initial_state`.

    Raises:
        ExportError: there is no such export, query or source, or the source was none of Kafka's.
    """
    opened = _open(spark, export)
    name = opened.query(query)
    found = source_offsets.source_of(name, opened.made.queries[name], source)
    offsets = source_offsets.starting_offsets_of(name, found, partitions or {})
    use.note(Part.OFFSETS, opened.made)
    return offsets


# --- reading an export -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Opened:
    spark: SparkSession
    uri: str
    made: ExportManifest

    def query(self, wanted: str | None) -> str:
        """Return the name under which a query's state is kept, which is that of its checkpoint."""
        known = sorted(self.made.queries)
        if wanted is None:
            if len(known) == 1:
                return known[0]
            raise ExportError(f"{self.uri} has {len(known)} queries ({', '.join(known)}): say which with query=…")
        from tidegate_spark.queries.queries import checkpoint_directory  # noqa: PLC0415 - a script need not run under Tidegate

        for name in (wanted, checkpoint_directory(wanted)):
            if name in self.made.queries:
                return name
        raise ExportError(f"{self.uri} has no query {wanted!r} (query=…): it has {', '.join(known) or 'none'}")

    def tables(self, query: str) -> list[ExportedTable]:
        return [table for table in self.made.tables if table.query == query]

    def rows(self, table: ExportedTable) -> DataFrame:
        place = f"{self.uri.rpartition('/')[0]}/{table.file}"
        try:
            return formats.read(self.spark, self.made.format, place, _schema(table))
        except PySparkException as error:
            raise ExportError(f"{place} cannot be read: {first_line(str(error))}") from error


def _open(spark: SparkSession, export: str | None) -> _Opened:
    uri = export or os.environ.get(EXPORT_VARIABLE, "")
    if not uri:
        raise ExportError(
            "no export was named: set spec.startFrom.exportedState of the application, or say export=… "
            "(status.export.uri of the StreamSnapshot has the address)"
        )
    if "://" in uri and has_detour(uri):
        raise ExportError(
            f"{uri} has a path segment '.' or '..', which Hadoop resolves and S3 does not: write the address without it"
        )
    if not uri.endswith(f"/{MANIFEST_FILE}"):
        uri = f"{uri.rstrip('/')}/{MANIFEST_FILE}"
    uri = uri.replace("s3://", "s3a://", 1) if uri.startswith("s3://") else uri
    try:
        (row,) = spark.read.text(uri, wholetext=True).collect()
    except (PySparkException, ValueError) as error:
        raise ExportError(
            f"there is no export that can be read at {uri} (spec.startFrom.exportedState, or export=…): "
            f"{first_line(str(error))}"
        ) from error
    return _Opened(spark, uri, parse(row[0], uri))


def _named(opened: _Opened, query: str, operator: int | None) -> list[ExportedTable]:
    tables = [table for table in opened.tables(query) if operator in (None, table.operator)]
    able = [table for table in tables if has_named_state(table.operator_name)]
    numbers = sorted({table.operator for table in able})
    if len(numbers) == 1:
        return able
    if numbers:
        raise ExportError(f"query {query!r} has such state in operators {numbers}: say which with operator=…")
    if not tables:
        raise ExportError(f"{opened.uri} has no state of query {query!r}, operator {operator}")
    what = sorted({f"{table.operator} ({table.operator_name})" for table in tables})
    raise ExportError(messages.no_initial_state(", ".join(what), query))


def _by_key(rows: DataFrame, table: ExportedTable, at: ExportedQuery) -> DataFrame:
    """Return one row for each key: ``key``, and what the table has of it under the table's name."""
    if table.kind == VALUE:
        value, expires = _unwrapped(F.col("value"), table, at)
        return rows.where(expires).select("key", value.alias(table.name))
    if table.kind == LIST:
        elements = F.col("list_value")
        if table.ttl:
            living = F.filter(elements, lambda each: each.getField(_EXPIRES) > F.lit(at.timestamp_ms))
            elements = F.transform(living, lambda each: each.getField("value"))
        return rows.select("key", elements.alias(table.name))
    if table.kind == MAP:
        value, expires = _unwrapped(F.col("user_map_value"), table, at)
        pair = F.struct(F.col("user_map_key").alias("key"), value.alias("value"))
        pairs = F.collect_list(pair)
        return rows.where(expires).groupBy("key").agg(pairs.alias(table.name))
    if table.kind == TIMERS:
        times = F.sort_array(F.collect_list("expiration_timestamp_ms"))
        return rows.groupBy("key").agg(times.alias(TIMERS_NAME))
    raise ExportError(f"{table.file} is {table.kind!r}, which is not known here: use a newer Tidegate")


def _unwrapped(column: Column, table: ExportedTable, at: ExportedQuery) -> tuple[Column, Column]:
    """Return a value without its time to live, and whether that had not passed."""
    if not table.ttl:
        return column, F.lit(True)
    return column.getField("value"), column.getField(_EXPIRES) > F.lit(at.timestamp_ms)


def _schema(table: ExportedTable) -> StructType:
    return StructType.fromJson(json.loads(table.schema))


def _list_tables(tables: Iterable[ExportedTable]) -> str:
    return ", ".join(f"{table.operator}/{table.name}" for table in tables) or "none"
