"""Keeps each number of a topic with its last digit, in a value, a list and a map, and writes what has changed.

Arguments: broker, topic, and where the results go. ``<target>/<batch>`` holds one JSON line for each digit.
"""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

broker, topic, target = sys.argv[1:4]
spark = SparkSession.builder.getOrCreate()


class KeptDigits(StatefulProcessor):
    """One digit."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.total: Any = handle.getValueState("total", "n BIGINT")
        self.numbers: Any = handle.getListState("numbers", "x BIGINT")
        self.hundreds: Any = handle.getMapState("hundreds", "h STRING", "n BIGINT")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's
        """Keep the numbers of a batch."""
        n = self.total.get()[0] if self.total.exists() else 0
        for row in rows:
            n += 1
            self.numbers.appendValue((row.number,))
            hundred = (f"hundred {row.number // 100}",)
            before = self.hundreds.getValue(hundred)[0] if self.hundreds.containsKey(hundred) else 0
            self.hundreds.updateValue(hundred, (before + 1,))
        self.total.update((n,))
        yield Row(digit=key[0], n=n)

    def close(self) -> None:
        """Do nothing."""


numbers = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", "160")
    .load()
    .select(f.col("value").cast("string").cast("long").alias("number"))
    .withColumn("digit", f.col("number") % 10)
)


def write(changed: DataFrame, batch: int) -> None:
    """Write what changed in a batch; once more, if the batch is run again."""
    changed.coalesce(1).write.mode("overwrite").json(f"{target}/{batch:06d}")


kept = numbers.groupBy("digit").transformWithState(KeptDigits(), "digit BIGINT, n BIGINT", "update", "none")
query = kept.writeStream.outputMode("update").queryName("keeping").foreachBatch(write)
query.trigger(processingTime="4 seconds").start().awaitTermination()
