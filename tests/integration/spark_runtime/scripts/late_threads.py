"""The last line comes first: threads start the queries, a pool and ``atexit`` have what is left to do."""

import atexit
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("value STRING").text(sys.argv[1])
pool = ThreadPoolExecutor()


def say(text: str) -> None:
    """Write a whole line at once: ``print`` writes its end on its own, and two threads would share a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


atexit.register(say, "called at exit")


def run(name: str) -> None:
    time.sleep(2)
    rows.writeStream.queryName(name).trigger(availableNow=True).format("noop").start().awaitTermination()
    pool.submit(say, f"from the pool: {name}").result()


for query in ("a", "b"):
    threading.Thread(target=run, args=(query,)).start()
say("the last line")
