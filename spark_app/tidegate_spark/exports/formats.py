"""Writes rows of state as JSON lines, CSV or Parquet, and reads them with their types. Talks to Spark.

Equal rows give equal bytes: one file, sorted by key. A value that a format cannot hold is refused, or written otherwise
with a note in the manifest's schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from tidegate_spark.contract.snapshot_protocol import EXPORT_FORMATS, export_format
from tidegate_spark.exports.errors import ExportError, UnsuitableFormatError
from tidegate_spark.exports.tables import LIST, MAP, TIMERS, VALUE, quoted

JSON_LINES, CSV, PARQUET = EXPORT_FORMATS
SUFFIXES = {JSON_LINES: "jsonl", CSV: "csv", PARQUET: "parquet"}
PARTITION = "partition_id"
"""The column of Spark's state reader that shows where a row was: of this checkpoint, and of no interest elsewhere."""
_NULL = "\\N"
_TIMES = {
    "timeZone": "UTC",
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
IN_JSON = {**_TIMES, "ignoreNullFields": "false"}
"""Options of Spark's JSON."""
_IN_CSV = {
    **_TIMES,
    "header": "true",
    "nullValue": _NULL,
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "positiveInf": "Infinity",
    "negativeInf": "-Infinity",
    "lineSep": "\n",
}
_TEXT_TYPES = frozenset(
    {
        "binary",
        "boolean",
        "byte",
        "date",
        "decimal",
        "double",
        "float",
        "integer",
        "long",
        "short",
        "string",
        "timestamp",
        "timestamp_ntz",
    }
)
"""What JSON and CSV can say of plain values."""
_NESTED = (StructType, ArrayType, MapType)


@dataclass(frozen=True)
class _Leaf:
    """A column of a CSV file: a column of the rows, or a field of one that is a struct."""

    name: str
    of: Column
    type: DataType


def portable(rows: DataFrame) -> DataFrame:
    """Return rows of the state reader without what only Spark's own files need.

    An aggregation may have several fields of one name; then the second is ``<name>_2``. A column that says nothing, as
    the value of a deduplication does, is left out.
    """
    kept = []
    for column in rows.schema.fields:
        if column.name == PARTITION or _says_nothing(column.dataType):
            continue
        wanted = _with_names(column.dataType)
        found = F.col(quoted(column.name))
        kept.append((found if wanted == column.dataType else found.cast(wanted)).alias(column.name))
    return rows.select(*kept)


def in_order(rows: DataFrame, kind: str) -> DataFrame:
    """Return the rows as one partition, in an order that depends on nothing but them."""
    names = {VALUE: ["key"], LIST: ["key"], MAP: ["key", "user_map_key"]}.get(kind, list(rows.columns))
    if kind == TIMERS:
        names = ["key", "expiration_timestamp_ms"]
    types = {name: rows.schema[name].dataType for name in names}
    order = [F.col(quoted(name)).asc_nulls_first() for name in names if not _has(types[name], MapType)]
    if any(_has(each, MapType, FloatType, DoubleType) for each in types.values()):
        # Numbers that are equal may be written otherwise (0.0 and -0.0), and maps have no order at all.
        whole = F.struct(*(rebuilt(F.col(quoted(name)), types[name]).alias(name) for name in names))
        order.append(F.to_json(whole, IN_JSON).asc())
    return rows.repartition(1).sortWithinPartitions(*order)


def write(rows: DataFrame, form: str, directory: str) -> None:
    """Write rows that are one partition into ``directory``, as one file.

    Raises:
        UnsuitableFormatError: the format cannot hold them.
    """
    if form != PARQUET:
        _check_fit(rows.schema, form)
    if form == JSON_LINES:
        rows.write.options(**IN_JSON, lineSep="\n").option("compression", "none").json(directory)
    elif form == CSV:
        flat = rows.select(*(_as_text(leaf).alias(leaf.name) for leaf in _leaves(rows)))
        flat.write.options(**_IN_CSV).option("emptyValue", '""').option("compression", "none").csv(directory)
    else:
        rows.write.option("compression", "snappy").parquet(directory)


def read(spark: SparkSession, form: str, uri: str, schema: StructType) -> DataFrame:
    """Return the rows of a file that :func:`write` made, with their types.

    Raises:
        ExportError: the format is not known here.
    """
    try:
        known = export_format(form)
    except ValueError:
        raise ExportError(f"{uri} is {form}, which is not known here: use a newer Tidegate") from None
    if known == PARQUET:
        return spark.read.schema(schema).parquet(uri)
    if known == JSON_LINES:
        return spark.read.schema(schema).options(**_TIMES, lineSep="\n", mode="FAILFAST").json(uri)
    flat = StructType([StructField(leaf.name, _type_in_csv(leaf.type)) for leaf in _leaves_of(schema)])
    options = {**_IN_CSV, "emptyValue": "", "multiLine": "true", "mode": "FAILFAST", "maxCharsPerColumn": "-1"}
    rows = spark.read.schema(flat).options(**options).csv(uri)
    return rows.select(*(_from_text(column) for column in schema.fields))


# --- what a column is ------------------------------------------------------------------------------------------------


def _says_nothing(of: DataType) -> bool:
    return isinstance(of, StructType) and all(isinstance(field.dataType, NullType) for field in of.fields)


def _with_names(of: DataType) -> DataType:
    """Return the type with a different name for each field; a field that is always null becomes a string."""
    if isinstance(of, NullType):
        return StringType()
    if isinstance(of, ArrayType):
        return ArrayType(_with_names(of.elementType), of.containsNull)
    if isinstance(of, MapType):
        return MapType(_with_names(of.keyType), _with_names(of.valueType), of.valueContainsNull)
    if not isinstance(of, StructType):
        return of
    taken: set[str] = set()
    fields = []
    for field in of.fields:
        name, number = field.name, 1
        # Spark takes names for equal that differ in case.
        while name.lower() in taken:
            number += 1
            name = f"{field.name}_{number}"
        taken.add(name.lower())
        fields.append(StructField(name, _with_names(field.dataType), field.nullable))
    return StructType(fields)


def _parts(of: DataType) -> Iterator[DataType]:
    yield of
    if isinstance(of, StructType):
        inner = [field.dataType for field in of.fields]
    elif isinstance(of, ArrayType):
        inner = [of.elementType]
    else:
        inner = [of.keyType, of.valueType] if isinstance(of, MapType) else []
    for each in inner:
        yield from _parts(each)


def _has(of: DataType, *kinds: type[DataType]) -> bool:
    return any(isinstance(part, kinds) for part in _parts(of))


def rebuilt(column: Column, of: DataType) -> Column:
    """Return a struct made of its fields: rows of a join's state have more of them than their schema says."""
    if not isinstance(of, StructType):
        return column
    return F.struct(*(column.getField(field.name).alias(field.name) for field in of.fields))


def _check_fit(schema: StructType, form: str) -> None:
    for column in schema.fields:
        for part in _parts(column.dataType):
            if isinstance(part, MapType) and not isinstance(part.keyType, StringType):
                what = f"a map with keys that are no strings ({part.simpleString()})"
            elif isinstance(part, _NESTED) or part.typeName().split("(")[0] in _TEXT_TYPES:
                continue
            else:
                what = f"a {part.simpleString()}"
            raise UnsuitableFormatError(
                f"column {column.name!r} holds {what}, which {form} cannot represent: use Parquet"
            )


# --- CSV: no structs, one kind of text --------------------------------------------------------------------------------


def _leaves(rows: DataFrame) -> list[_Leaf]:
    return list(_leaves_of(rows.schema))


def _leaves_of(schema: StructType) -> Iterator[_Leaf]:
    for column in schema.fields:
        whole = F.col(quoted(column.name))
        if not isinstance(column.dataType, StructType):
            yield _Leaf(column.name, whole, column.dataType)
            continue
        for field in column.dataType.fields:
            yield _Leaf(f"{column.name}.{field.name}", whole.getField(field.name), field.dataType)


def _is_nested(of: DataType) -> bool:
    return isinstance(of, _NESTED)


def _type_in_csv(of: DataType) -> DataType:
    return StringType() if _is_nested(of) or isinstance(of, BinaryType) else of


def _as_text(leaf: _Leaf) -> Column:
    if _is_nested(leaf.type):
        return F.to_json(leaf.of, IN_JSON)
    if isinstance(leaf.type, BinaryType):
        return F.base64(leaf.of)
    if isinstance(leaf.type, StringType):
        # So that no text is taken for the absence of one.
        return F.when(leaf.of.startswith("\\"), F.concat(F.lit("\\"), leaf.of)).otherwise(leaf.of)
    return leaf.of


def _from_text(column: StructField) -> Column:
    if not isinstance(column.dataType, StructType):
        return _value_of(column.name, column.dataType).alias(column.name)
    fields = (
        _value_of(f"{column.name}.{field.name}", field.dataType).alias(field.name) for field in column.dataType.fields
    )
    return F.struct(*fields).alias(column.name)


def _value_of(name: str, of: DataType) -> Column:
    found = F.col(quoted(name))
    if _is_nested(of):
        return F.from_json(found, of, {**_TIMES, "mode": "FAILFAST"})  # type: ignore[arg-type] # any type is taken
    if isinstance(of, BinaryType):
        return F.unbase64(found)
    if isinstance(of, StringType):
        return F.when(found.startswith("\\"), F.substring(found, 2, 2**31 - 1)).otherwise(found)
    return found
