"""Keeps two numbers for each key, of all keys in the first batch. Argument: how many keys."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", int(sys.argv[1])).load()
counts = rows.groupBy((f.col("value") % int(sys.argv[1])).alias("key")).agg(f.count("*").alias("n"), f.sum("value"))
sink = counts.writeStream.outputMode("update").format("noop").trigger(processingTime="10 minutes")
sink.start().awaitTermination()
