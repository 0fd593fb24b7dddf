"""Writes numbers to a table, as people write it, and says what is in there: rows, different ones, the highest.

Arguments: ``table``, or the port of a socket, whose lines are written to the table instead; the query's name.
"""

import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
if sys.argv[1] == "table":
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().select("value")
else:
    rows = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", int(sys.argv[1])).load()
name = sys.argv[2] if len(sys.argv) > 2 else "events"
query = rows.writeStream.queryName(name).trigger(processingTime="1 second").toTable("events")
while query.isActive:
    time.sleep(0.5)
    spark.catalog.refreshTable("events")
    found = spark.table("events").agg(f.count("value"), f.countDistinct("value"), f.max("value")).collect()[0]
    print("in the table:", *found, flush=True)
query.awaitTermination()
