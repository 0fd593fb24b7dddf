"""A query whose next trigger is an hour away."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
query = rows.writeStream.format("console").trigger(processingTime="1 hour").start()
query.awaitTermination()
