"""Says how many executors there are whenever that changes, and when. With an argument it asks for a second, so many
seconds after the first.

A driver is not counted. A query runs meanwhile, so that a driver with an agent is ready.
"""

import sys
import threading
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext._jsc.sc()


def check() -> None:
    """Look ten times a second."""
    known, ask_at = -1, float("inf")
    while True:
        number = len(context.statusTracker().getExecutorInfos()) - 1
        if number != known:
            print(f"executors {number} {time.time():.3f}", flush=True)
            known = number
            if number == 1 and len(sys.argv) > 1:
                ask_at = time.time() + float(sys.argv[1])
        if time.time() >= ask_at:
            ask_at = float("inf")
            print(f"asked {time.time():.3f}", flush=True)
            context.requestExecutors(2)  # the backend adds to those that were asked for so, not to the first one
        time.sleep(0.1)


threading.Thread(target=check, daemon=True).start()
rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
sink = rows.writeStream.format("noop").queryName("growing").option("checkpointLocation", "/tmp/growing")
sink.start().awaitTermination()
