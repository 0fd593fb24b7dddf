import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json, to_json, struct

brokers, topic = sys.argv[1:]
spark = SparkSession.builder.appName("enrich").getOrCreate()
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 2)
    .load()
)
orders = raw.select(from_json(col("value").cast("string"), "id LONG, item STRING, price DOUBLE").alias("o")).select("o.*")
dear = orders.filter("price >= 0").select(col("item").alias("key"), to_json(struct("*")).alias("value"))
query = (
    dear.writeStream.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("topic", f"{topic}-dear")
    .option("checkpointLocation", "/tmp/checkpoints/enrich")
    .trigger(processingTime="1 second")
    .start()
)
query.awaitTermination()
