"""Puts out what it reads in several ways, by a query each, whose name says which; its arguments say where, and which.

``told`` counts rows by key, four more of each key in each batch, and says what every batch came to. ``files`` writes
numbers as JSON lines, twenty in each batch. ``kept`` tells of each batch once by its id, and once by lineage and id, as
sinks do that drop what they have. ``counted`` goes nowhere. ``asking`` says what control messages have set in every
batch; ``named``, whose source has a name, does so in the version ``new`` alone, and takes part in no other.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark import control

folder, ways = Path(sys.argv[1]), sys.argv[2:]
# The second one is what Spark writes offsets by names in.
NAMED_SOURCES = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
counts = rows.groupBy((f.col("value") % 5).alias("key")).count()


def report(batch: DataFrame, number: int) -> None:
    """Print the batch on one line."""
    counted = {str(row["key"]): row["count"] for row in batch.collect()}
    sys.stdout.write(f"told {json.dumps([number, counted])}\n")
    sys.stdout.flush()


def keep(batch: DataFrame, number: int) -> None:
    """Keep a batch under two keys, unless there is one."""
    least = batch.agg({"value": "min"}).collect()[0][0]
    for key in (f"{number}", f"{os.environ['TIDEGATE_LINEAGE']}-{number}"):
        if not (folder / "kept" / key).exists():
            (folder / "kept" / key).write_text(json.dumps([os.environ["VERSION"], least]))


def report_settings(name: str) -> Callable[[DataFrame, int], None]:
    """Return what says of a batch what is in force there."""

    def report_each(batch: DataFrame, number: int) -> None:
        batch.collect()
        sys.stdout.write(f"{name} {json.dumps([number, control.current().config])}\n")
        sys.stdout.flush()

    return report_each


def start_named() -> StreamingQuery:
    """Start a query that may be given a further source, since it knows its own by name."""
    for key, value in NAMED_SOURCES.items():
        spark.conf.set(key, value)
    source = spark.readStream.format("rate-micro-batch").name("numbers").option("rowsPerBatch", 20).load()
    if os.environ.get("VERSION") == "new":
        query = writer("named", control.controlled(source)).foreachBatch(report_settings("named")).start()
    else:
        query = writer("named", source).format("noop").start()
    for key in NAMED_SOURCES:
        spark.conf.unset(key)
    return query


def writer(name: str, read: DataFrame) -> DataStreamWriter:
    """Return the beginning of a query."""
    return read.writeStream.queryName(name).trigger(processingTime="4 seconds")


begin: dict[str, Callable[[], StreamingQuery]] = {
    "told": lambda: writer("told", counts).outputMode("update").foreachBatch(report).start(),
    "files": lambda: writer("files", rows.select("value")).format("json").start(f"{folder}/files"),
    "kept": lambda: writer("kept", rows).foreachBatch(keep).start(),
    "counted": lambda: writer("counted", counts).outputMode("update").format("noop").start(),
    "asking": lambda: writer("asking", control.controlled(rows)).foreachBatch(report_settings("asking")).start(),
    "named": start_named,
}
queries = []
for way in ways:
    queries.append(begin[way]())
    # Alone: Spark gives a query's Python process ten seconds to connect (PythonWorkerFactory), and beside the first
    # batches of others two cores did not always get it there.
    while way in ("named", "asking") and queries[-1].isActive and queries[-1].lastProgress is None:
        time.sleep(0.1)
queries[0].awaitTermination()
