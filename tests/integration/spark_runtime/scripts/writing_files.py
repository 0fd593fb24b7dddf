"""Writes what it reads as files. Argument: the folder."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().coalesce(1)
query = rows.writeStream.format("json").trigger(processingTime="300 milliseconds").start(sys.argv[1])
query.awaitTermination()
