"""Starts two queries without a name, and swallows what ordinary code swallows."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows.writeStream.format("noop").start()
try:
    rows.writeStream.format("noop").start()
except Exception as error:
    print("swallowed", error)
spark.streams.awaitAnyTermination()
