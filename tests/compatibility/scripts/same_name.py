from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
rows.writeStream.queryName("events").format("noop").start()
rows.writeStream.queryName("events").format("console").start()
spark.streams.awaitAnyTermination()
