"""Its second batch fails once there is a file."""

import os
import sys
import time

from pyspark.sql import DataFrame, SparkSession

(path,) = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


def write(batch: DataFrame, number: int) -> None:
    if number == 1:
        print("inside the batch", flush=True)
        while not os.path.exists(path):
            time.sleep(0.05)
        raise ValueError("the table is full")


rows.writeStream.foreachBatch(write).start().awaitTermination()
