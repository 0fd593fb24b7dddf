"""One query has read all files of a folder, the other's next trigger is an hour away."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows.writeStream.format("console").trigger(processingTime="1 hour").queryName("sleeping").start()
words = spark.readStream.schema("value STRING").text(sys.argv[1])
counts = words.groupBy("value").count()
counts.writeStream.outputMode("update").format("noop").queryName("idle").start().awaitTermination()
