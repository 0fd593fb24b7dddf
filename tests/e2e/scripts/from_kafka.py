"""Reads a topic from a broker that may not be there. Arguments: broker, topic, and the most rows of a batch."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
lines = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", sys.argv[1])
    .option("kafka.default.api.timeout.ms", "10000")
    .option("kafka.request.timeout.ms", "5000")
    .option("subscribe", sys.argv[2])
    .options(**({"maxOffsetsPerTrigger": sys.argv[3]} if len(sys.argv) > 3 else {}))
    .load()
)
lines.writeStream.format("noop").start().awaitTermination()
