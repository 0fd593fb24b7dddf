"""Keeps 512 bytes of state for each key, in RocksDB. Argument: the folder with its input, one file for each batch.

A file's rows name keys: ``first``, ``last`` and ``step`` of a sequence; each of them gets new bytes, which no
compression makes smaller.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

COLUMNS = 64
"""Of eight bytes each."""

spark = SparkSession.builder.getOrCreate()
schema = "first BIGINT, last BIGINT, step BIGINT, round BIGINT"
files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(sys.argv[1])
keyed = files.select(f.explode(f.sequence("first", "last", "step")).alias("key"), "round")
# 58 random bits: whatever a key gets in all its rounds, its sums have room.
sums = [f.sum(f.shiftright(f.xxhash64("key", "round", f.lit(n)), 6)).alias(f"s{n}") for n in range(COLUMNS)]
keyed.groupBy("key").agg(*sums).writeStream.outputMode("update").format("noop").start().awaitTermination()
