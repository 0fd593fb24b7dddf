import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, get_json_object, upper

brokers, topic, duration = sys.argv[1:]
spark = SparkSession.builder.appName("alerts").getOrCreate()
orders = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .load()
)
items = orders.select(upper(get_json_object(col("value").cast("string"), "$.item")).alias("value")).dropna()
query = (
    items.writeStream.queryName("alerts")  # type: ignore[call-overload] # PySpark has realTime in no overload
    .format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("topic", f"{topic}-dear")
    .option("checkpointLocation", "/tmp/checkpoints/alerts")
    .outputMode("update")
    .trigger(realTime=duration)
    .start()
)
query.awaitTermination()
