from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.format("rate").option("rowsPerSecond", 10).load().selectExpr("timestamp", "value % 50 AS guid")
unique = events.withWatermark("timestamp", "10 seconds").dropDuplicatesWithinWatermark(["guid"])
unique.writeStream.format("console").trigger(processingTime="2 seconds").start().awaitTermination()
