"""Counts by key, which is state, and takes part in the control stream."""

from pyspark.sql import SparkSession

from tidegate_spark import control

spark = SparkSession.builder.getOrCreate()
rows = control.controlled(spark.readStream.format("rate").option("rowsPerSecond", 20).load())

counts = rows.groupBy((rows["value"] % 10).alias("key")).count()
query = counts.writeStream.format("noop").queryName("counts").outputMode("update").trigger(processingTime="4 seconds")
query.start().awaitTermination()
