"""Counts rows by key, every four seconds, for ever: keyed state and no input but Spark's own."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
counts = rows.groupBy((f.col("value") % 10).alias("key")).count()
query = counts.writeStream.format("noop").outputMode("update").queryName("counting")
query.trigger(processingTime="4 seconds").start().awaitTermination()
