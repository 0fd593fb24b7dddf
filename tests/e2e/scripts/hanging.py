"""Commits a few batches; the tasks of the next one never end. Argument: the first batch that hangs."""

import sys
import threading
from collections.abc import Iterable

from pyspark.sql import DataFrame, Row, SparkSession

first = int(sys.argv[1])
spark = SparkSession.builder.getOrCreate()


def hang(rows: Iterable[Row]) -> None:
    """Wait for ever, in a process beside an executor."""
    print("this task hangs", flush=True)
    threading.Event().wait()


def work(frame: DataFrame, batch: int) -> None:
    """Have each partition of a batch be a task."""
    if batch < first:
        frame.count()
    else:
        frame.foreachPartition(hang)


rows = spark.readStream.format("rate").option("rowsPerSecond", 10).option("numPartitions", 2).load()
query = rows.writeStream.foreachBatch(work).queryName("hanging")
query.trigger(processingTime="4 seconds").start().awaitTermination()
