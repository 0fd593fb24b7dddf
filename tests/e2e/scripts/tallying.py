"""Tallies the numbers of a topic by their last digit, and writes the whole tally after each batch.

Arguments: broker, topic, where the tallies go, how many seconds each number takes (none, unless it is said), the
trigger's interval, the most numbers in a batch, and one more if it is to take part in the control stream.
``<target>/<batch>`` holds one JSON line for each digit.
"""

import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

broker, topic, target = sys.argv[1:4]
work = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
interval = sys.argv[5] if len(sys.argv) > 5 else "2 seconds"
most = sys.argv[6] if len(sys.argv) > 6 else "2000"

spark = SparkSession.builder.getOrCreate()


@f.udf("long")
def worked(number: int) -> int:
    """Return the number, later."""
    time.sleep(work)
    return number


numbers = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", most)
    .load()
    .select(f.col("value").cast("string").cast("long").alias("number"))
)
if work > 0:
    numbers = numbers.select(worked("number").alias("number"))
if len(sys.argv) > 7:
    from tidegate_spark import control

    numbers = control.controlled(numbers)


def write(tally: DataFrame, batch: int) -> None:
    """Write the tally after a batch; once more, if the batch is run again."""
    tally.coalesce(1).write.mode("overwrite").json(f"{target}/{batch:06d}")


counts = numbers.groupBy((f.col("number") % 10).alias("digit")).count()
query = counts.writeStream.outputMode("complete").queryName("tallying").foreachBatch(write)
query.trigger(processingTime=interval).start().awaitTermination()
