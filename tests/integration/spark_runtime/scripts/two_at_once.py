"""Two threads ask for Spark at the same time, each with a builder of its own; then each has a query."""

import threading
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

together = threading.Barrier(2)


def run(name: str) -> None:
    together.wait()
    spark = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC").getOrCreate()
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    rows.writeStream.queryName(name).format("noop").start().awaitTermination()


with ThreadPoolExecutor(2) as pool:
    list(pool.map(run, ("left", "right")))
