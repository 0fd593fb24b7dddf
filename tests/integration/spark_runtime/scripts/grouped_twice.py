"""Counts rows by the two columns of its first argument; the second says how often it looks."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

keys, pause = sys.argv[1].split(","), sys.argv[2]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
shop, item = (f.col("value") % 3).cast("string"), (f.col("value") % 5).cast("string")
rows = rows.select(shop.alias("shop"), shop.alias("store"), item.alias("item"))
counts = rows.groupBy(*keys).count().writeStream.outputMode("update").queryName("sales")
counts.format("noop").trigger(processingTime=pause).start().awaitTermination()
