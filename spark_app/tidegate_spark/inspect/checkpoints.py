"""The functions with which a script or notebook reads state from a checkpoint. Talks to Spark.

They return Spark's DataFrames, which read when they are evaluated: a running query may have cleaned the batch up by
then.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from tidegate_spark.exports.errors import ExportError
from tidegate_spark.exports.tables import Table
from tidegate_spark.inspect import checkpoint_logs, state_frames
from tidegate_spark.inspect.answers import time_of
from tidegate_spark.inspect.checkpoint_logs import At, Files
from tidegate_spark.inspect.errors import NotThereError, UnreadableError
from tidegate_spark.inspect.selection import table_of, window_path, with_windows


@dataclass(frozen=True)
class Kept:
    """Something that an operator keeps: a state variable, a side of a join, or all of its state."""

    operator: int
    operator_name: str
    name: str
    kind: str
    """value, list, map, timers or rows."""
    ttl: bool


@dataclass(frozen=True)
class Position:
    """Where a query is after a batch; times as text, in UTC."""

    batch: int
    began: str
    watermark: str | None
    """That the next batch goes by; None if there is none."""
    offsets: dict[str, str]
    """By source, number or name: as Spark logs them."""


def operators(spark: SparkSession, checkpoint: str, batch: int | None = None) -> list[Kept]:
    """Return what the operators of a query keep.

    Args:
        spark: the session.
        checkpoint: address of the query's checkpoint: ``s3a://…/lineages/<n>/<query>``.
        batch: a committed one; None: the newest.

    Raises:
        InspectionError: there is no such checkpoint or batch, or Spark cannot read it.
    """
    return [
        Kept(table.operator, table.operator_name, table.name, table.kind, table.ttl)
        for table in _opened(spark, checkpoint, batch)[2]
    ]


def state(
    spark: SparkSession, checkpoint: str, operator: int = 0, name: str | None = None, batch: int | None = None
) -> DataFrame:
    """Return the rows of an operator's state: ``key`` and, by the kind of state, ``value`` or others.

    Args:
        spark: the session.
        checkpoint: see :func:`operators`.
        operator: its number.
        name: of the state variable or side of a join; needed if there are several.
        batch: a committed one; None: the newest.

    Raises:
        InspectionError: there is no such state, or several fit.
    """
    session, at, tables = _opened(spark, checkpoint, batch)
    return state_frames.frame_of(session, checkpoint, at, table_of(tables, checkpoint, operator, name))


def windows(
    spark: SparkSession, checkpoint: str, operator: int = 0, name: str | None = None, batch: int | None = None
) -> DataFrame:
    """Return the rows of windows in the state, with columns ``window_start``, ``window_end`` and ``closed`` in front.

    A window is closed if the watermark has passed its end; null if the query has no watermark.

    Args:
        spark: the session.
        checkpoint: see :func:`operators`.
        operator: its number.
        name: see :func:`state`.
        batch: a committed one; None: the newest.

    Raises:
        InspectionError: there is no such state, or it has no windows.
    """
    session, at, tables = _opened(spark, checkpoint, batch)
    table = table_of(tables, checkpoint, operator, name)
    rows = state_frames.frame_of(session, checkpoint, at, table)
    path = window_path(rows.schema.jsonValue())
    if path is None:
        raise NotThereError(with_windows(checkpoint, [table]))
    return state_frames.with_window(rows, path, at.watermark_ms)


def sources(spark: SparkSession, checkpoint: str, batch: int | None = None) -> Position:
    """Return where the inputs of a query are after a batch.

    Args:
        spark: the session.
        checkpoint: see :func:`operators`.
        batch: a committed one; None: the newest.

    Raises:
        InspectionError: there is no such checkpoint or batch.
    """
    at = _at(Files(spark, checkpoint), checkpoint, batch)
    watermark = time_of(at.watermark_ms) if at.watermark_ms else None
    return Position(at.batch, time_of(at.began_ms), watermark, dict(at.offsets))


def _opened(spark: SparkSession, checkpoint: str, batch: int | None) -> tuple[SparkSession, At, list[Table]]:
    files = Files(spark, checkpoint)
    at = _at(files, checkpoint, batch)
    # Of its own for each call: a DataFrame keeps the settings of its session.
    session = state_frames.Sessions(spark).of(at)
    try:
        return session, at, state_frames.tables_at(session, files, checkpoint)
    except (ExportError, *checkpoint_logs.SPARKS) as error:
        raise UnreadableError(f"the state of {checkpoint} cannot be read: {error}") from error


def _at(files: Files, checkpoint: str, batch: int | None) -> At:
    try:
        return checkpoint_logs.read_batch(files, checkpoint, batch)
    except checkpoint_logs.SPARKS as error:
        raise NotThereError(
            f"{checkpoint} has no batch {'' if batch is None else batch} to look at: {error}"
        ) from error
