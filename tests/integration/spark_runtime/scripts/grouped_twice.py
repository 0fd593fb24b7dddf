"""Counts rows by the two columns of its first argument; then come how often it looks and what it is called."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

keys, pause, name = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
shop, item = (f.col("value") % 3).cast("string"), (f.col("value") % 5).cast("string")
rows = rows.select(shop.alias("shop"), shop.alias("store"), item.alias("item"))
counts = rows.groupBy(*keys).count().writeStream.outputMode("update").queryName(name)
counts.format("noop").trigger(processingTime=pause).start().awaitTermination()
