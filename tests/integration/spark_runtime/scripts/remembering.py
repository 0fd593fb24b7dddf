"""Counts rows by key, four more of each key in each batch, by a transformWithState; says what every batch came to.

With the argument ``begin`` it starts from the export that the application is told; with ``forget`` it is told and
does not. Beginning, it keeps the count as a text.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

how = sys.argv[1] if len(sys.argv) > 1 else ""
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()


class Counter(StatefulProcessor):
    """One key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state, of another type when it begins again."""
        self.count: Any = handle.getValueState("count", "n STRING" if how else "n BIGINT")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803 - Spark's
        """Take over what was exported."""
        self.count.update((str(initialState["count"]["n"]),))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's
        """Count."""
        n = (int(self.count.get()[0]) if self.count.exists() else 0) + sum(1 for _ in rows)
        self.count.update((str(n) if how else n,))
        yield Row(key=key[0], count=n)

    def close(self) -> None:
        """Do nothing."""


def print_batch(batch: DataFrame, number: int) -> None:
    """Print the batch on one line."""
    counts = {str(row["key"]): row["count"] for row in batch.collect()}
    sys.stdout.write(f"told {json.dumps([number, counts])}\n")
    sys.stdout.flush()


begun = None
if how == "begin":
    from tidegate_spark import initial_state

    begun = initial_state(spark).groupBy("key")
keyed = rows.withColumn("key", f.col("value") % 5).groupBy("key")
counts = keyed.transformWithState(Counter(), "key BIGINT, count BIGINT", "update", "none", begun)
sink = counts.writeStream.outputMode("update").foreachBatch(print_batch).trigger(processingTime="1 second")
sink.start().awaitTermination()
