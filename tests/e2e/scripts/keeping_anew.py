"""What ``keeping.py`` does, with another type for everything that it keeps, beginning with what that one kept.

Arguments: as there. The results also have the sum of the numbers, and how many there are of each hundred.
"""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate_spark import initial_state, starting_offsets

broker, topic, target = sys.argv[1:4]
spark = SparkSession.builder.getOrCreate()


class KeptDigits(StatefulProcessor):
    """One digit."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.total: Any = handle.getValueState("total", "n STRING")
        self.numbers: Any = handle.getListState("numbers", "x STRING, old BOOLEAN")
        self.hundreds: Any = handle.getMapState("hundreds", "h BIGINT", "n STRING")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803 - Spark's
        """Take over what the other version kept."""
        self.total.update((str(initialState["total"]["n"]),))
        self.numbers.put([(str(each["x"]), True) for each in initialState["numbers"]])
        for pair in initialState["hundreds"]:
            self.hundreds.updateValue((int(pair["key"]["h"].split()[1]),), (str(pair["value"]["n"]),))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's
        """Keep the numbers of a batch."""
        n = int(self.total.get()[0]) if self.total.exists() else 0
        for row in rows:
            n += 1
            self.numbers.appendValue((str(row.number), False))
            hundred = (row.number // 100,)
            before = int(self.hundreds.getValue(hundred)[0]) if self.hundreds.containsKey(hundred) else 0
            self.hundreds.updateValue(hundred, (str(before + 1),))
        self.total.update((str(n),))
        kept = list(self.numbers.get())
        hundreds = sum(int(value[0]) for _, value in self.hundreds.iterator())
        old = sum(1 for each in kept if each[1])
        yield Row(digit=key[0], n=n, sum=sum(int(each[0]) for each in kept), hundreds=hundreds, old=old)

    def close(self) -> None:
        """Do nothing."""


numbers = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribe", topic)
    .option("startingOffsets", starting_offsets(spark))
    .option("maxOffsetsPerTrigger", "160")
    .load()
    .select(f.col("value").cast("string").cast("long").alias("number"))
    .withColumn("digit", f.col("number") % 10)
)


def write(changed: DataFrame, batch: int) -> None:
    """Write what changed in a batch; once more, if the batch is run again."""
    changed.coalesce(1).write.mode("overwrite").json(f"{target}/{batch:06d}")


kept = numbers.groupBy("digit").transformWithState(
    KeptDigits(),
    "digit BIGINT, n BIGINT, sum BIGINT, hundreds BIGINT, old BIGINT",
    "update",
    "none",
    initial_state(spark).groupBy("digit"),
)
query = kept.writeStream.outputMode("update").queryName("keeping").foreachBatch(write)
query.trigger(processingTime="4 seconds").start().awaitTermination()
