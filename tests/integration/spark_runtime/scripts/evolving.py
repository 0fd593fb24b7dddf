"""Counts rows by key; its first argument says what of it is another version's, the second how often it looks."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

what, pause = sys.argv[1:3]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()


@f.udf("long")
def risky(value: int) -> int:
    """Raise in the third batch from the beginning of the input that is new to this version."""
    if what == "exception" and value >= int(sys.argv[3]):
        raise ValueError(f"no such sensor: {value}")
    return value


if what == "source":
    rows = rows.union(spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load())
key = (risky(f.col("value")) % 5).alias("key") if what == "exception" else (f.col("value") % 5).alias("key")
if what == "column":
    rows = rows.withColumn("gone", f.col("no_such_column"))
if what == "operator":
    counts = rows.withWatermark("timestamp", "1 minute").dropDuplicates(["value"])
elif what == "schema":
    counts = rows.groupBy(key).agg(f.count("*"), f.max("timestamp").alias("newest"))
else:
    counts = rows.groupBy(key).count()
mode = "append" if what == "operator" else "update"
sink = counts.writeStream.outputMode(mode).format("noop").trigger(processingTime=pause)
sink.start().awaitTermination()
