"""Counts the records of a topic; arguments: broker, topic, and "state" to count them with state, "told" to print that,
too, or "function" to print those of each batch.
"""

import sys

from pyspark.sql import SparkSession

broker, topic, how = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
records = reader.option("startingOffsets", "earliest").load()
counts = records.groupBy("partition").count()
if how == "state":
    writer = counts.writeStream.outputMode("update").format("noop")
else:
    rows_of = records if how == "function" else counts
    writer = rows_of.writeStream.outputMode("update" if how == "told" else "append").foreachBatch(
        lambda rows, batch: print(f"batch {batch}: {rows.collect()}", flush=True)
    )
writer.start().awaitTermination()
