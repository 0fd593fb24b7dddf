"""One query whose batches last long, and whose tasks finish one after the other."""

import time

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
numbers = spark.readStream.format("rate").option("rowsPerSecond", 10).load()


def work(frame: DataFrame, batch: int) -> None:
    """Run one task a second on each core."""
    spark = frame.sparkSession
    spark.range(0, 100, 1, 100).rdd.foreach(lambda _: time.sleep(1.0))


numbers.writeStream.foreachBatch(work).start().awaitTermination()
