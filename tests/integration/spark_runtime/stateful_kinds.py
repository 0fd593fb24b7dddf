"""Queries with state of every kind that there is, for tests that do something to the state and look what came of it.

Each reads the same numbers. What is written in Java belongs on Spark's class path.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tests.integration.spark_runtime.test_exports import Shopper

COUNTED = "key BIGINT, n BIGINT"
BETWEEN_BATCHES_MS = 1000
"""What the numbers' time advances by from one batch to the next."""


def numbers(spark: SparkSession) -> DataFrame:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 40)
    return rows.option("advanceMillisPerBatch", BETWEEN_BATCHES_MS).load()


def timed(spark: SparkSession, delay: str = "1 hour") -> DataFrame:
    return numbers(spark).withWatermark("timestamp", delay)


def keyed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("key", F.col("value") % 13)


# --- by expressions ---------------------------------------------------------------------------------------------------


def grouped(spark: SparkSession) -> DataFrame:
    return keyed(numbers(spark)).groupBy("key", (F.col("value") % 3).alias("third")).agg(F.sum("value"), F.count("*"))


def sessions(spark: SparkSession) -> DataFrame:
    rows = keyed(timed(spark))
    return rows.groupBy(F.session_window("timestamp", "10 minutes"), "key").count().select("key", "count")


def deduplicated(spark: SparkSession) -> DataFrame:
    return keyed(numbers(spark)).select("key", (F.col("value") % 31).alias("n")).dropDuplicates(["key", "n"])


def deduplicated_in_time(spark: SparkSession) -> DataFrame:
    return keyed(timed(spark)).dropDuplicatesWithinWatermark(["key"]).select("key")


def joined(spark: SparkSession) -> DataFrame:
    left, right = keyed(timed(spark)).alias("l"), keyed(timed(spark)).alias("r")
    return left.join(right, F.expr("l.key = r.key AND l.timestamp = r.timestamp")).select("l.key", "l.value", "r.value")


def in_one_place(spark: SparkSession) -> DataFrame:
    return numbers(spark).agg(F.count("*"))


# --- by functions, in Python and in Java ------------------------------------------------------------------------------


def totals(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    n = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
    state.update((n,))
    yield pd.DataFrame({"key": [key[0]], "n": [n]})


class Counter(StatefulProcessor):
    """Counts the rows of a key in a value, in a map by their rest, and keeps some; what it tells follows from them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.total: Any = handle.getValueState("total", "n BIGINT")
        self.by_rest: Any = handle.getMapState("by rest", "rest BIGINT", "n BIGINT")
        self.kept: Any = handle.getListState("kept", "x BIGINT")

    def count(self, values: list[int]) -> int:
        """Take values in; return a number to which all variables contribute."""
        n = (self.total.get()[0] if self.total.exists() else 0) + len(values)
        self.total.update((n,))
        for value in values:
            rest = (value % 3,)
            before = self.by_rest.getValue(rest)[0] if self.by_rest.containsKey(rest) else 0
            self.by_rest.updateValue(rest, (before + 1,))
            self.kept.appendValue((value,))
        return self.reported()

    def reported(self) -> int:
        """Return a number to which all variables contribute."""
        rests = sum((rest[0] + 1) * n[0] for rest, n in self.by_rest.iterator())
        return int(self.total.get()[0] + 1_000 * rests + 1_000_000 * sum(kept[0] for kept in self.kept.get()))

    def close(self) -> None:
        pass


class CounterOfRows(Counter):
    """In rows; tells a key's number once more when a time is over by the watermark."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        each = list(rows)
        self.handle.registerTimer(max(row.millis for row in each) + BETWEEN_BATCHES_MS * 3 // 2)
        yield Row(key=key[0], n=self.count([row.value for row in each]))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        yield Row(key=key[0], n=-self.reported() - expiredTimerInfo.getExpiryTimeInMs())


class CounterOfFrames(Counter):
    """In pandas."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        values = [int(value) for frame in rows for value in frame["value"]]
        yield pd.DataFrame({"key": [key[0]], "n": [self.count(values)]})


def in_pandas(spark: SparkSession) -> DataFrame:
    groups = keyed(numbers(spark)).groupBy("key")
    return groups.applyInPandasWithState(totals, COUNTED, "n BIGINT", "update", GroupStateTimeout.NoTimeout)


def with_state(spark: SparkSession) -> DataFrame:
    rows = numbers(spark).select(F.col("value"), (F.col("value") % 13).alias("shopper"))
    return rows.groupBy("shopper").transformWithState(Shopper(), "n BIGINT", "update", "ProcessingTime")


def with_state_and_timers(spark: SparkSession) -> DataFrame:
    rows = keyed(timed(spark, "0 seconds")).withColumn("millis", F.unix_millis("timestamp"))
    return rows.groupBy("key").transformWithState(CounterOfRows(), COUNTED, "update", "EventTime")


def with_state_in_pandas(spark: SparkSession) -> DataFrame:
    groups = keyed(numbers(spark)).groupBy("key")
    return groups.transformWithStateInPandas(CounterOfFrames(), COUNTED, "update", "None")


def in_java(name: str) -> Callable[[SparkSession], DataFrame]:
    """Return what makes the query of this name in the tests' class ``Counting``."""

    def query(spark: SparkSession) -> DataFrame:
        jvm: Any = spark._jvm
        made = getattr(jvm.dev.tidegate.testing.Counting, name)
        return DataFrame(made(keyed(numbers(spark))._jdf), spark)

    return query


@dataclass(frozen=True)
class Kind:
    """One kind of query; ``compared``: what it puts out follows from its input alone."""

    operator: str
    """Spark's name of it."""
    query: Callable[[SparkSession], DataFrame]
    mode: str = "update"
    compared: bool = True


KINDS = {
    "aggregation": Kind("stateStoreSave", grouped),
    "sessions": Kind("sessionWindowStateStoreSaveExec", sessions, "complete"),
    "deduplication": Kind("dedupe", deduplicated, "append"),
    "deduplication in time": Kind("dedupeWithinWatermark", deduplicated_in_time, "append"),
    "join": Kind("symmetricHashJoin", joined, "append"),
    "applyInPandasWithState": Kind("applyInPandasWithState", in_pandas),
    "flatMapGroupsWithState": Kind("flatMapGroupsWithState", in_java("flatMapGroupsWithState")),
    "transformWithState": Kind("transformWithStateInPySparkExec", with_state_and_timers),
    "transformWithState that ages": Kind("transformWithStateInPySparkExec", with_state, compared=False),
    "transformWithState in pandas": Kind("transformWithStateInPandasExec", with_state_in_pandas),
    "transformWithState in Java": Kind("transformWithStateExec", in_java("transformWithState")),
}
