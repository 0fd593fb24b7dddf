"""Two queries; as soon as one of them has ended, the script stops the other. A batch of that takes some seconds."""

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
        time.sleep(8)


rows.writeStream.queryName("slow").foreachBatch(wait).start()
rows.writeStream.queryName("quick").format("noop").trigger(processingTime="1 second").start()
spark.streams.awaitAnyTermination()
for query in spark.streams.active:
    query.stop()
sys.stdout.write("the script has stopped the rest\n")
