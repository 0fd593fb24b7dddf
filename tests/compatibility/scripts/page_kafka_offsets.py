"""Confluent's habits: headers and keys, offsets by timestamp, and the lag of a consumer group."""

import json
import logging
import sys
import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, current_timestamp, from_json, struct, to_json, transform, array, lit, encode
from pyspark.sql.streaming import StreamingQueryListener

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
bootstrap, topic = sys.argv[1:3]
GROUP = f"{topic}-lag"


class CommitOffsets(StreamingQueryListener):
    """Commits what Spark has read to a group of its own, so that the usual tools show the lag."""

    def __init__(self):
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})

    def onQueryStarted(self, event):
        logging.info("started %s", event.name)

    def onQueryProgress(self, event):
        for source in event.progress.sources:
            ends = json.loads(source.endOffset) if isinstance(source.endOffset, str) else source.endOffset
            offsets = [TopicPartition(t, int(p), o) for t, parts in (ends or {}).items() for p, o in parts.items()]
            if offsets:
                self.consumer.commit(offsets=offsets, asynchronous=False)
                logging.info("group %s is at %s", GROUP, {(o.topic, o.partition): o.offset for o in offsets})
                print("offsets committed to the group", flush=True)

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        self.consumer.close()


admin = AdminClient({"bootstrap.servers": bootstrap})
partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
spark = SparkSession.builder.appName("confluent").getOrCreate()
spark.streams.addListener(CommitOffsets())
since = json.dumps({topic: {str(p): int((time.time() - 86400) * 1000) for p in partitions}})
records = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("subscribe", topic)
    .option("includeHeaders", "true")
    .option("startingOffsetsByTimestamp", since)
    .option("startingOffsetsByTimestampStrategy", "latest")
    .option("maxOffsetsPerTrigger", 50)
    .option("failOnDataLoss", "false")
    .option("groupIdPrefix", "orders-service")
    .load()
)
orders = records.select("key", "headers", from_json(col("value").cast("string"), "id LONG, item STRING, price DOUBLE").alias("o"))
dear = orders.where("o.price > 4").select(
    col("o.item").cast("binary").alias("key"),
    to_json(struct("o.*", current_timestamp().alias("at"))).alias("value"),
    array(struct(lit("source").alias("key"), encode(lit("spark"), "UTF-8").alias("value"))).alias("headers"),
    lit(f"{topic}-dear").alias("topic"),
)
query = (
    dear.writeStream.queryName("dear-orders")
    .format("kafka")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("kafka.compression.type", "lz4")
    .option("kafka.linger.ms", "50")
    .option("includeHeaders", "true")
    .option("checkpointLocation", "/tmp/checkpoint-dear")
    .start()
)
while not query.awaitTermination(10):
    last = query.lastProgress
    print("rows/s", last and last.processedRowsPerSecond, flush=True)
