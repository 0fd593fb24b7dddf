"""Reads a source that Spark finds by itself, in a package of PYTHONPATH. Argument: a folder for what it is told."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
queue = spark.readStream.format("orderqueue").option("folder", sys.argv[1]).load()
queue.writeStream.queryName("queue").format("noop").trigger(processingTime="300 milliseconds").start()
spark.streams.awaitAnyTermination()
