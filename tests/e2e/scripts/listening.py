"""Says for each task of each batch which messages are in force there, and which came into force with the batch.

Its argument is where to. ``<target>/tasks/<batch>`` has a JSON line for each task, ``<target>/records/<batch>`` one for
each message; of a batch that is run again both have those of each run.
"""

import json
import sys
from collections.abc import Callable, Iterator

import pandas as pd
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidegate_spark import control

target = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 40).option("numPartitions", 2).load()


def check(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Say what is in force in this task."""
    task = TaskContext.get()
    for _ in frames:
        now = control.current()
        sent = json.dumps(sorted(now.get("sent", {}, dict)))
        said = {"task": task.partitionId() if task else -1, "position": now.position, "sent": sent}
        yield pd.DataFrame([said])


def write_to(name: str) -> Callable[[DataFrame, int], None]:
    """Return what writes a batch beside what an earlier run of it has written."""
    # As many tasks as the batch has: that they agree is what is to be shown.
    return lambda batch, number: batch.write.mode("append").json(f"{target}/{name}/{number:06d}")


counts = control.controlled(rows).groupBy((f.col("value") % 10).alias("key")).count()
tasks = counts.mapInPandas(check, "task int, position long, sent string").writeStream.outputMode("update")
tasks.queryName("tasks").trigger(processingTime="3 seconds").foreachBatch(write_to("tasks")).start()
records = control.stream(spark).select("sequence", "payload").writeStream.queryName("records")
records.trigger(processingTime="3 seconds").foreachBatch(write_to("records")).start()
spark.streams.awaitAnyTermination()
