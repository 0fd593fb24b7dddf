"""Tallies the numbers of a topic by their last digit, and writes the whole tally after each batch.

Arguments: broker, topic, and where the tallies go. ``<target>/<batch>`` holds one JSON line for each digit.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

broker, topic, target = sys.argv[1:4]
spark = SparkSession.builder.getOrCreate()
numbers = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", "40")
    .load()
    .select((f.col("value").cast("string").cast("long") % 10).alias("digit"))
)


def write(tally: DataFrame, batch: int) -> None:
    """Write the tally after a batch; once more, if the batch is run again."""
    tally.coalesce(1).write.mode("overwrite").json(f"{target}/{batch:06d}")


tallies = numbers.groupBy("digit").count().writeStream.outputMode("complete").queryName("tallying")
tallies.trigger(processingTime="500 milliseconds").foreachBatch(write).start().awaitTermination()
