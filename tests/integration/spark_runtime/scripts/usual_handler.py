"""The usual handler of SIGTERM, and a script that waits for its query, or lets it come to its end."""

import multiprocessing
import signal
import sys
import time

from pyspark.sql import SparkSession

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True).start()
spark = SparkSession.builder.getOrCreate()
if sys.argv[1] == "endless":
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    rows.writeStream.format("noop").trigger(processingTime="1 second").start()
    rows.writeStream.queryName("other").format("noop").trigger(processingTime="1 second").start()
    spark.streams.awaitAnyTermination()
    spark.stop()
else:
    message = spark.readStream.schema("value STRING").text(sys.argv[1])
    message.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
