"""Code in the JVM writes rows into the folder ``argv[1]``, beside a query of the script."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).option("numPartitions", 1).load()
rows.writeStream.queryName("main").format("noop").trigger(processingTime="1 second").start()
files = rows._jdf.writeStream().format("json").option("checkpointLocation", f"{sys.argv[1]}-checkpoint")
files.start(sys.argv[1]).awaitTermination()
