from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

spark = SparkSession.builder.getOrCreate()
rate = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
impressions = rate.selectExpr("value AS impressionAdId", "timestamp AS impressionTime").withWatermark("impressionTime", "10 seconds")
clicks = rate.selectExpr("value AS clickAdId", "timestamp AS clickTime").withWatermark("clickTime", "20 seconds")
joined = impressions.join(
    clicks,
    expr("clickAdId = impressionAdId AND clickTime >= impressionTime AND clickTime <= impressionTime + interval 1 minute"),
    "leftOuter",
)
joined.writeStream.format("console").trigger(processingTime="2 seconds").start().awaitTermination()
