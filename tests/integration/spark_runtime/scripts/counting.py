"""Counts rows by key with back-to-back triggers; knows nothing of Tidegate, and has a checkpoint of its own in mind."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.appName("counting").master("local[*]").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "7")
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
counts = rows.groupBy((f.col("value") % 5).alias("key")).count()
query = counts.writeStream.outputMode("update").format("noop").start(checkpointLocation="/tmp/checkpoint-of-the-script")
query.awaitTermination()
print("the script goes on after awaitTermination")
