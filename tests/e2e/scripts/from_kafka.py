"""Reads a topic from a broker that may not be there."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
lines = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", sys.argv[1])
    .option("kafka.default.api.timeout.ms", "10000")
    .option("kafka.request.timeout.ms", "5000")
    .option("subscribe", sys.argv[2])
    .load()
)
lines.writeStream.format("noop").start().awaitTermination()
