"""Writes what it reads in several ways, each with a query of its own, whose name says which.

Arguments: a folder for files and tables, and which of the ways are taken. Nobody listens where Kafka's broker would be.
"""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

folder, *ways = sys.argv[1:]
spark = SparkSession.builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().selectExpr("value")
message = rows.selectExpr("CAST(value AS STRING) AS value")


def forget(batch: DataFrame, number: int) -> None:
    """Do nothing."""


def writer(name: str) -> DataStreamWriter:
    """Return the beginning of a query."""
    return message.writeStream.queryName(name).trigger(processingTime="2 seconds")


kafka = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "said"}
begin: dict[str, Callable[[], StreamingQuery]] = {
    "files": lambda: writer("files").start(f"{folder}/files", "json"),
    "function": lambda: writer("function").foreachBatch(forget).start(),
    "shown": lambda: writer("shown").format("console").start(),
    "kafka": lambda: writer("kafka").format("kafka").options(**kafka).start(),
}
queries = [begin[way]() for way in ways]
queries[0].awaitTermination()
