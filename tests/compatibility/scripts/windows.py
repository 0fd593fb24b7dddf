from pyspark.sql import SparkSession
from pyspark.sql.functions import window

spark = SparkSession.builder.appName("windowed").getOrCreate()
events = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
windowed = events.withWatermark("timestamp", "5 seconds").groupBy(window("timestamp", "4 seconds", "2 seconds")).count()
windowed.writeStream.outputMode("append").format("console").trigger(processingTime="2 seconds").start().awaitTermination()
