"""Counts the records of a topic, with state or in a function for batches; arguments: broker, topic, "state" or
"function".
"""

import sys

from pyspark.sql import SparkSession

broker, topic, how = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
records = records.option("startingOffsets", "earliest").load()
if how == "state":
    writer = records.groupBy("partition").count().writeStream.outputMode("update").format("noop")
else:
    writer = records.writeStream.foreachBatch(lambda rows, batch: print(f"batch {batch}: {rows.count()}", flush=True))
writer.start().awaitTermination()
