from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, session_window

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.format("rate").option("rowsPerSecond", 10).load().withColumn("user", col("value") % 4)
sessions = (
    events.withWatermark("timestamp", "5 seconds")
    .groupBy(session_window("timestamp", "3 seconds"), "user")
    .agg(count("*").alias("clicks"))
)
sessions.writeStream.outputMode("append").format("console").trigger(processingTime="2 seconds").start().awaitTermination()
