"""Says each batch that it is given, with back-to-back triggers."""

import sys

from pyspark.sql import DataFrame, SparkSession


def say(batch: DataFrame, number: int) -> None:
    """Say it when its rows are through."""
    sys.stdout.write(f"batch {number} of {batch.count()} rows\n")


spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
rows.writeStream.foreachBatch(say).start().awaitTermination()
