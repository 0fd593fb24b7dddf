"""Counts rows by key with the state store that Spark has by default, which the argument ``session`` names here."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
if sys.argv[1:] == ["session"]:
    store = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", store)
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
sums = rows.groupBy((rows.value % 5).alias("k")).count()
sums.writeStream.outputMode("update").format("noop").start().awaitTermination()
