"""Puts out what it reads, in the way its first argument names; the second says where."""

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

kind, place = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().selectExpr("value")


def touch(name: str) -> None:
    """Leave a trace."""
    (Path(place) / name).write_text(os.environ.get("TIDEGATE_REHEARSAL", ""))


def on_batch(batch: DataFrame, number: int) -> None:
    """Write a batch."""
    touch(f"batch-{number}")


def on_row(row: Row) -> None:
    """Write a row."""
    touch(f"row-{row['value']}")


writer = rows.writeStream.trigger(processingTime="300 milliseconds")
if kind == "foreachBatch":
    query = writer.foreachBatch(on_batch).start()
elif kind == "foreach":
    query = writer.foreach(on_row).start()
elif kind == "json":
    query = writer.format("json").partitionBy("value").start(f"{place}/files")
elif kind == "parquet":
    query = writer.start(path=f"{place}/files", format="parquet")
elif kind == "kafka":
    words = rows.selectExpr("CAST(value AS STRING) AS value")
    to = words.writeStream.format("kafka").option("kafka.bootstrap.servers", place).option("topic", "rehearsed")
    query = to.trigger(processingTime="300 milliseconds").start()
elif kind == "table":
    query = writer.toTable("rehearsed")
elif kind == "memory":
    query = writer.queryName("rehearsed").format("memory").start()
else:
    query = writer.format(kind).start()
query.awaitTermination()
