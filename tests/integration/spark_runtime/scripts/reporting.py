"""Counts rows by key, four more of each key in each batch, and says what every batch came to."""

import json
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()


def print_batch(batch: DataFrame, number: int) -> None:
    """Print the batch on one line."""
    counts = {str(row["key"]): row["count"] for row in batch.collect()}
    sys.stdout.write(f"told {json.dumps([number, counts])}\n")
    sys.stdout.flush()


counts = rows.groupBy((f.col("value") % 5).alias("key")).count()
sink = counts.writeStream.outputMode("update").foreachBatch(print_batch).trigger(processingTime="1 second")
sink.start().awaitTermination()
