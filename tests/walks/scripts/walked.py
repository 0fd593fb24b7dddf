"""Counts rows by key, and has workers ask for messages; its argument is a file.

When that appears, it removes it and raises.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tidegate_spark import control

spark = SparkSession.builder.getOrCreate()
control.config(limit=float)
crash = Path(sys.argv[1])


def limited(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Keep the rows up to the limit that is in force."""
    for frame in frames:
        yield frame[frame["value"] <= control.current().get("limit", 1e12, float)]


rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 2).load()
kept = control.controlled(rows).mapInPandas(limited, "timestamp timestamp, value long")
counts = kept.groupBy((f.col("value") % 10).alias("key")).count()
writer = counts.writeStream.queryName("main").outputMode("update").format("noop")
query = writer.trigger(processingTime="2 seconds").start()
while not crash.exists():
    query.awaitTermination(1)
crash.unlink()
raise RuntimeError("the walk asked for a crash")
