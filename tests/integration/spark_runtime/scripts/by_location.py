"""Starts an unnamed query for each location that it is given, in their order."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
for location in sys.argv[1:]:
    writer = rows.writeStream.format("noop").trigger(processingTime="500 milliseconds")
    query = writer.option("checkpointLocation", location).start()
    print("started", query.name, flush=True)
spark.streams.awaitAnyTermination()
