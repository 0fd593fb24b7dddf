"""Ends in one of several ways, by the argument."""

import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def hang(frame: DataFrame, batch: int) -> None:
    """Wait for ever, from the second batch on."""
    frame.count()
    if batch > 0:
        threading.Event().wait()


way = sys.argv[1]
if way == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if way == "memory":
    held = [bytearray(16 * 2**20) for _ in range(1024)]
if way == "disk":
    Path("/full/zeros").write_bytes(bytes(8 * 2**20))
if way == "connect":
    SparkSession.builder.remote("sc://127.0.0.1").getOrCreate()
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
if way == "stuck":
    rows.writeStream.foreachBatch(hang).queryName("stuck").start().awaitTermination()
rows.writeStream.format("noop").start()
rows.writeStream.format("noop").start()
spark.streams.awaitAnyTermination()
