"""Says in each batch what is in force."""

import json
import sys

from pyspark.sql import DataFrame, SparkSession

from tidegate_spark import control

spark = SparkSession.builder.getOrCreate()
rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).option("numPartitions", 2)
rows = rate.option("advanceMillisPerBatch", 1000).option("startTimestamp", 1_000_000).load()


def print_batch(batch: DataFrame, number: int) -> None:
    """Say it."""
    batch.count()
    now = control.current()
    sys.stdout.write(f"main {json.dumps([number, now.position, dict(now.config)])}\n")
    sys.stdout.flush()


control.controlled(rows).writeStream.queryName("main").trigger(processingTime="2 seconds").foreachBatch(
    print_batch
).start()
spark.streams.awaitAnyTermination()
