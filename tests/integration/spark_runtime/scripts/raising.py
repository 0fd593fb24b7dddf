"""Starts a query, lets it run, and raises."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
query = rows.writeStream.queryName("steady").format("noop").start()
while not query.lastProgress:
    query.awaitTermination(1)
raise LookupError("the table of limits is empty")
