"""Writes numbers as JSON lines to the place that its argument names, twenty in each batch."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().select("value")
sink = rows.writeStream.format("json").trigger(processingTime="300 milliseconds")
sink.start(sys.argv[1]).awaitTermination()
