"""Counts all rows, without a key, for ever."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
total = rows.groupBy().count()
query = total.writeStream.format("noop").outputMode("update").queryName("total")
query.trigger(processingTime="4 seconds").start().awaitTermination()
