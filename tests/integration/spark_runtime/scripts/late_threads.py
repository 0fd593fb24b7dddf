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
atexit.register(print, "called at exit", flush=True)


def run(name: str) -> None:
    time.sleep(2)
    rows.writeStream.queryName(name).trigger(availableNow=True).format("noop").start().awaitTermination()
    pool.submit(print, "from the pool:", name, flush=True).result()


for query in ("a", "b"):
    threading.Thread(target=run, args=(query,)).start()
print("the last line", flush=True)
