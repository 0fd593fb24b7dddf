"""Ends by os._exit: after a query's end, in spite of a thread; from a watchdog's thread; after a stop; in a batch.

Or by the JVM's System.exit, from a watchdog's thread.
"""

import os
import signal
import sys
import threading
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

way, source = sys.argv[1:]
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


def watch(query: StreamingQuery) -> None:
    while not query.lastProgress:
        time.sleep(0.1)
    if way == "watchdog":
        os._exit(3)
    jvm: Any = spark._jvm
    jvm.System.exit(int(source))


def leave(batch: DataFrame, number: int) -> None:
    if number == 1:
        os._exit(int(source))


if way == "finished":
    threading.Thread(target=time.sleep, args=(3600,)).start()
    message = spark.readStream.schema("value STRING").text(source)
    message.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
    os._exit(0)
if way == "batch":
    rows.writeStream.foreachBatch(leave).start().awaitTermination()
query = rows.writeStream.format("noop").trigger(processingTime="1 second").start()
if way in {"watchdog", "jvm"}:
    threading.Thread(target=watch, args=(query,)).start()
    query.awaitTermination()
print("the handler is set", flush=True)
stopping.wait()
query.stop()
spark.stop()
print("the last line", flush=True)
os._exit(0)
