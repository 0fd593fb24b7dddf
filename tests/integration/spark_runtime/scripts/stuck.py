"""One query whose second batch never ends: its function waits for ever."""

import threading

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
numbers = spark.readStream.format("rate").option("rowsPerSecond", 10).load()


def hang(frame: DataFrame, batch: int) -> None:
    """Wait for ever, from the second batch on."""
    frame.count()
    if batch > 0:
        threading.Event().wait()


numbers.writeStream.foreachBatch(hang).start().awaitTermination()
