"""Each batch takes as long as the argument says, in seconds."""

import sys
import time

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


def wait(batch: DataFrame, number: int) -> None:
    """Take long from the second batch on."""
    sys.stdout.write(f"batch {number} begins\n")
    sys.stdout.flush()
    if number:
        time.sleep(float(sys.argv[1]))


rows.writeStream.foreachBatch(wait).start()
while True:
    time.sleep(60)
