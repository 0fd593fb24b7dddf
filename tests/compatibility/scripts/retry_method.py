import functools
import time

from pyspark.sql import SparkSession

failures = []


class Sink:
    def __init__(self, table):
        self.table = table
        self.batches = 0

    def write(self, rows, batch_id, suffix):
        self.batches += 1
        print("batch", batch_id, self.table + suffix, rows.count(), flush=True)
        if self.batches == 3 and not failures:
            failures.append(batch_id)
            raise RuntimeError("sink unavailable")


spark = SparkSession.builder.getOrCreate()
while True:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    write = functools.partial(Sink("orders").write, suffix="_raw")
    query = rows.writeStream.foreachBatch(write).trigger(processingTime="3 seconds").start()
    try:
        query.awaitTermination()
    except Exception as error:
        print("retrying after", type(error).__name__, flush=True)
        time.sleep(1)
