"""Reads state by Spark's own reader: settings, tables, and what its errors mean. Talks to Spark."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from tidegate_spark.exports.tables import StoreMetadata, Table
from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint
from tidegate_spark.snapshots.checkpoint.query_logs import OFFSETS, read_offsets
from tidegate_spark.snapshots.manifest import QueryAt
from tidegate_spark.storage.store import Entry

_STREAMING = "spark.sql.streaming."
_FORMAT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"


def settings_of(logged: Mapping[str, str], format_version: int) -> dict[str, str]:
    """Return the settings of the session that reads a batch: Spark's reader goes by those that it was written with.

    Args:
        logged: the settings in the batch's entry of the offset log.
        format_version: of the checkpoint.
    """
    settings = {key: str(value) for key, value in logged.items() if key.startswith(_STREAMING)}
    settings[_FORMAT_VERSION] = str(format_version)
    settings["spark.sql.session.timeZone"] = "UTC"
    return settings


def session_at(spark: SparkSession, at: QueryAt) -> SparkSession:
    """Return a session of its own with the settings under which a query's state was written."""
    session = spark.newSession()
    # Spark's state stores report to an object that comes with the streams of a session.
    session.streams  # noqa: B018 - it is made by being asked for
    logged = read_offsets(log_of(at), at.batch).conf
    for key, value in settings_of(logged, int(at.facts.get("formatVersion", 1))).items():
        session.conf.set(key, value)
    return session


def log_of(at: QueryAt) -> Checkpoint:
    """Return of a checkpoint what the manifest has of it: the batch's entry of the offset log; pure."""
    path = f"{OFFSETS}/{at.batch}"
    return Checkpoint({path: Entry(path, len(at.offsets), "")}, lambda _: at.offsets.encode())


def stores_of(session: SparkSession, checkpoint: str) -> list[StoreMetadata]:
    """Return what a checkpoint says of its state stores; raises what Spark raises."""
    rows = session.read.format("state-metadata").load(checkpoint).collect()
    return [
        StoreMetadata(row["operatorId"], row["operatorName"], row["stateStoreName"], row["operatorProperties"] or "")
        for row in rows
    ]


def rows_of(session: SparkSession, checkpoint: str, batch: int, table: Table) -> DataFrame:
    """Return the rows of a table after a batch, as Spark's reader gives them; raises what Spark raises."""
    reader = session.read.format("statestore").option("batchId", batch).option("operatorId", table.operator)
    return reader.options(**table.options).load(checkpoint)
