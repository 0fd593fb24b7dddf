"""Counts rows by key, for ever: keyed state and no input but Spark's own.

Arguments: seconds between batches, four unless given.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

pause = sys.argv[1] if len(sys.argv) > 1 else "4"
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
counts = rows.groupBy((f.col("value") % 10).alias("key")).count()
query = counts.writeStream.format("noop").outputMode("update").queryName("counting")
query.trigger(processingTime=f"{pause} seconds").start().awaitTermination()
