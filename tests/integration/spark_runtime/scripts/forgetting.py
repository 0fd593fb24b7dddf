"""Counts in memory, which it does not outlast, beside a query that goes on. Arguments: a port or 0, ``alone``.

The first is as people write it: it looks at the table of its sink, and the driver's end is its end. The port is that of
a socket, which is read as well; ``alone``: no query is there that goes on.
"""

import sys
import time

from pyspark.sql import SparkSession

port = int(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
often = {"processingTime": "500 milliseconds"}
if sys.argv[2:] != ["alone"]:
    rows.writeStream.queryName("lasting").format("noop").trigger(**often).start()
if port:
    lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
    lines.writeStream.queryName("lines").format("noop").trigger(**often).start()
newest = rows.writeStream.queryName("newest").format("memory").outputMode("append").trigger(**often).start()
while newest.isActive:
    time.sleep(0.5)
    print("least in memory:", spark.sql("SELECT min(value) AS least FROM newest").collect()[0]["least"], flush=True)
newest.awaitTermination()
