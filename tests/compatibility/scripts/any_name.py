from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
rows.dropDuplicates(["value"]).writeStream.queryName("dedup größe").format("noop").trigger(processingTime="1 second").start()
rows.writeStream.queryName("Orders/2026 (EU)").format("noop").trigger(processingTime="1 second").start()
spark.streams.awaitAnyTermination()
