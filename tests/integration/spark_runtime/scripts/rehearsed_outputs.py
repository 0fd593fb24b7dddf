"""Puts out what it reads in each way that there is, each in a query of its own, whose name says which.

Arguments: ``old``, which puts all but one of them out nowhere, and only once, or ``new``; a folder. A query in memory
has a name, as has whoever remembers what was written. Nobody listens where Kafka's broker would be.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

version, place = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().selectExpr("value")
message = rows.selectExpr("CAST(value AS STRING) AS value")
KAFKA = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "rehearsed"}
pause = {"old": "1 hour", "new": "300 milliseconds"}[version]


def on_batch(batch: DataFrame, number: int) -> None:
    """Write a batch."""
    (Path(place) / f"foreachBatch-{number}").touch()


def on_row(row: Row) -> None:
    """Write a row."""
    (Path(place) / f"foreach-{row['value']}").touch()


def writer(name: str, read: DataFrame = rows) -> DataStreamWriter:
    """Return the beginning of a query."""
    return read.writeStream.queryName(name).trigger(processingTime=pause)


ways: dict[str, Callable[[], StreamingQuery]] = {
    "foreachBatch": lambda: writer("foreachBatch").foreachBatch(on_batch).start(),
    "foreach": lambda: writer("foreach").foreach(on_row).start(),
    "json": lambda: writer("json").format("json").partitionBy("value").start(f"{place}/json"),
    "parquet": lambda: writer("parquet").start(path=f"{place}/parquet", format="parquet"),
    "table": lambda: writer("table").toTable("rehearsed"),
    "memory": lambda: writer("memory").format("memory").start(),
    "console": lambda: writer("console").format("console").start(),
    "kafka": lambda: writer("kafka", message).format("kafka").options(**KAFKA).start(),
}
for name, begin in ways.items():
    _ = writer(name).format("noop").start() if version == "old" else begin()
writer("remembered").format("json").start(f"{place}/remembered").awaitTermination()
