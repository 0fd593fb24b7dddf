"""Queries that keep state of every kind, over the same numbers: what each batch does to it can be computed.

Twenty numbers a batch, all of one second, from BEGIN on.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

BEGIN = 1_700_000_000_000
spark = SparkSession.builder.getOrCreate()


class Shopper(StatefulProcessor):
    """Keeps a value, a list and a map for each shopper."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name them."""
        self.total: Any = handle.getValueState("total", "n BIGINT")
        self.recent = handle.getListState("recent", "x BIGINT")
        self.by_kind: Any = handle.getMapState("by kind", "kind STRING", "n BIGINT")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Count."""
        n = self.total.get()[0] if self.total.exists() else 0
        for row in rows:
            n += 1
            self.recent.appendValue((row.value,))
            kind = (f"kind {row.value % 3}",)
            before = self.by_kind.getValue(kind)[0] if self.by_kind.containsKey(kind) else 0
            self.by_kind.updateValue(kind, (before + 1,))
        self.total.update((n,))
        yield from ()

    def close(self) -> None:
        """Do nothing."""


def numbers() -> DataFrame:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 1)
    return stream.option("startTimestamp", BEGIN).option("advanceMillisPerBatch", 1000).load()


def start(query: DataFrame, name: str, mode: str) -> StreamingQuery:
    writer = query.writeStream.queryName(name).outputMode(mode).format("noop")
    return writer.trigger(processingTime=sys.argv[1]).start()


# First and alone: Spark gives the Python process of such a query ten seconds to connect, whatever else it plans then.
shoppers = numbers().withColumn("id", f.concat(f.lit("shopper "), f.col("value") % 5)).groupBy("id")
first = start(shoppers.transformWithState(Shopper(), "id STRING", "update", "None"), "shoppers", "update")
while first.isActive and first.lastProgress is None:
    time.sleep(0.1)
two_seconds = f.window("timestamp", "2 seconds")
watched = numbers().withWatermark("timestamp", "1 second")
start(watched.withColumn("third", f.col("value") % 3).groupBy(two_seconds, "third").count(), "windows", "update")
distinct = watched.dropDuplicates(["value", "timestamp"])
start(distinct.groupBy(two_seconds).agg(f.count("*").alias("n")), "chained", "append")
left = numbers().select(f.col("value").alias("a"), f.col("timestamp").alias("ta")).withWatermark("ta", "1000 seconds")
right = numbers().select((f.col("value") * 2).alias("b"), f.col("timestamp").alias("tb"))
right = right.withWatermark("tb", "1000 seconds")
start(left.join(right, f.expr("a = b AND tb >= ta - interval 10 seconds")), "pairs", "append")
start(numbers().selectExpr("value * 2 AS double"), "stateless", "append")
spark.streams.awaitAnyTermination()
