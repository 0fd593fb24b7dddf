"""Keeps state of which some depends on the clock, and is held inside of a batch if a setting says so.

Twenty numbers a batch. The setting ``hold`` names a file: a batch in which it is in force waits until that is there.
``shoppers`` waits when the batch's state is written, ``sums`` before anything of the batch is.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate_spark import control

AN_HOUR_MS = 3_600_000
spark = SparkSession.builder.getOrCreate()
rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 2)
rows = rate.option("advanceMillisPerBatch", 1000).option("startTimestamp", 1_000_000).load()
control.config(hold=str)


class Shopper(StatefulProcessor):
    """Keeps a list, a value that ages, and a timer for each shopper."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name them."""
        self.handle = handle
        self.recent = handle.getListState("recent", "x BIGINT")
        self.seen = handle.getValueState("seen", "n BIGINT", ttlDurationMs=AN_HOUR_MS)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Remember."""
        values = [row.value for row in rows]
        for value in values:
            self.recent.appendValue((value,))
        self.seen.update((len(values),))
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 100 * AN_HOUR_MS)
        yield Row(id=key[0])

    def close(self) -> None:
        """Do nothing."""


def hold(name: str, number: int) -> None:
    """Say that a batch is held, and hold it."""
    wanted = control.current().get("hold", "", str)
    if wanted:
        sys.stdout.write(f"held {name} {number}\n")
        sys.stdout.flush()
    while wanted and not Path(wanted).exists():
        time.sleep(0.1)


def written_and_held(batch: DataFrame, number: int) -> None:
    """Have the state written first."""
    batch.collect()
    hold("shoppers", number)


def held_and_written(batch: DataFrame, number: int) -> None:
    """Have the state written last."""
    hold("sums", number)
    batch.collect()


def start(name: str, read: DataFrame, take: Callable[[DataFrame, int], None]) -> None:
    """Start a query."""
    writer = read.writeStream.queryName(name).outputMode("update").trigger(processingTime="2 seconds")
    writer.foreachBatch(take).start()


read = control.controlled(rows)
keyed = read.withColumn("id", f.concat(f.lit("shopper "), f.col("value") % 5)).groupBy("id")
start("shoppers", keyed.transformWithState(Shopper(), "id STRING", "update", "ProcessingTime"), written_and_held)
start("sums", read.groupBy((f.col("value") * 7 % 11).alias("k")).agg(f.avg("value")), held_and_written)
spark.streams.awaitAnyTermination()
