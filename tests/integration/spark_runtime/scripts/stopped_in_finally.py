"""A query that never ends is given some seconds; then the script stops Spark and ends, as many do."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
query = rows.writeStream.format("noop").trigger(processingTime="1 second").start()
try:
    while not query.lastProgress:
        query.awaitTermination(1)
finally:
    spark.stop()
sys.exit(0)
