"""Counts rows by key, for ever, in a query that has a place for its checkpoint and no name."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
writer = rows.writeStream.format("noop").trigger(processingTime="4 seconds")
writer.option("checkpointLocation", sys.argv[1]).start().awaitTermination()
