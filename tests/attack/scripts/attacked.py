"""Counts rows by key, back to back; the input is known beforehand. Arguments: rows of a batch, keys, tell | keep quiet.

Told to tell, it says what every batch came to.
"""

import json
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

rows_per_batch, keys, reports = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "tell"
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows_per_batch).load()
# In an order that has nothing to do with that of the keys.
keyed = rows.withColumn("key", f.col("value") * 7919 % keys)
counts = keyed.groupBy("key").agg(f.count("*").alias("count"), f.max("value").alias("last"))


def report(batch: DataFrame, number: int) -> None:
    """Print the batch on one line."""
    changed = sorted([row["key"], row["count"], row["last"]] for row in batch.collect())
    print(f"told {json.dumps([number, changed])}", flush=True)


writer = counts.writeStream.outputMode("update")
(writer.foreachBatch(report) if reports else writer.format("noop")).start().awaitTermination()
