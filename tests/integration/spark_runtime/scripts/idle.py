"""Counts words of a folder's files; once they are read there is nothing to do."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
words = spark.readStream.schema("value STRING").text(sys.argv[1])
counts = words.groupBy("value").count()
counts.writeStream.outputMode("update").format("noop").queryName("idle").start().awaitTermination()
