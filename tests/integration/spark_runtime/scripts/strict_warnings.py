"""Has every warning raised as an exception, as careful programs do; one of its queries writes its progress later."""

import sys
import warnings

warnings.simplefilter("error")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402 - what it imports is to be held to it

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


def count(batch: DataFrame, number: int) -> None:
    warnings.simplefilter("error")
    sys.stdout.write(f"batch {number} has {batch.count()}\n")


rows.writeStream.queryName("counted").foreachBatch(count).start()
later = rows.writeStream.queryName("later").format("noop").option("asyncProgressTrackingEnabled", "true")
later.option("asyncProgressTrackingCheckpointIntervalMs", "3000").trigger(processingTime="200 milliseconds").start()
spark.streams.awaitAnyTermination()
