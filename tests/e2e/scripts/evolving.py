"""Counts rows by key, for ever; with the argument ``newest`` its state has a column more."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
columns = [f.count("*").alias("count")]
if "newest" in sys.argv[1:]:
    columns.append(f.max("timestamp").alias("newest"))
counts = rows.groupBy((f.col("value") % 10).alias("key")).agg(*columns)
query = counts.writeStream.format("noop").outputMode("update").queryName("counting")
query.trigger(processingTime="4 seconds").start().awaitTermination()
