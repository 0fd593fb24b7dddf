"""Keeps an account of each key's records, and tells it after every one of them. Plain PySpark.

Reads records ``{"key": …, "number": …, "value": …}`` from a Kafka topic and writes for each of them one record to
another topic: ``{"id": "<partition>/<offset>", "key": …, "count": …, "sum": …, "last": …}``, where the id is the input
record's place and the rest is the key's state just after it. A key's records share a partition, so that their order,
and with it every output, does not depend on how the input is cut into batches.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

RECORD = "key STRING, number BIGINT, value BIGINT"
ACCOUNT = "count BIGINT, sum BIGINT, last BIGINT"
OUTPUT = "id STRING, key STRING, count BIGINT, sum BIGINT, last BIGINT"
PLANTED_NUMBER = 20
"""Each key's record of this number is the one that a planted mistake concerns."""


class Accounts(StatefulProcessor):
    """A key's count, sum and last number."""

    def __init__(self, plant: str) -> None:
        """``plant``: none; loss (a record is not accounted for); duplicate (one is accounted for twice)."""
        self._times = {"loss": 0, "duplicate": 2}.get(plant, 1)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._account = handle.getValueState("account", ACCOUNT)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Account for the key's records of this batch in the order of the topic; the shuffle does not keep it."""
        stored = self._account.get()
        count, total, last = stored or (0, 0, 0)
        for row in sorted(rows, key=lambda r: r.offset):
            for _ in range(self._times if row.number == PLANTED_NUMBER else 1):
                count, total, last = count + 1, total + row.value, row.number
                yield Row(id=f"{row.partition}/{row.offset}", key=key[0], count=count, sum=total, last=last)
        self._account.update((count, total, last))

    def close(self) -> None:
        """Nothing is held."""


def main() -> None:
    """Run until stopped."""
    parser = argparse.ArgumentParser(description="Account for every record.")
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--records", required=True, help="topic to read")
    parser.add_argument("--accounts", required=True, help="topic to write")
    parser.add_argument("--trigger", default="1 second")
    parser.add_argument("--plant", choices=("none", "loss", "duplicate"), default="none")
    options = parser.parse_args()
    begin(SparkSession.builder.appName("accounts").getOrCreate(), options).awaitTermination()


def begin(spark: SparkSession, options: argparse.Namespace, name: str = "accounts") -> StreamingQuery:
    """Start the query that the options describe."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.brokers)
        .option("subscribe", options.records)
        .option("startingOffsets", "earliest")
        .load()
        .select(f.from_json(f.col("value").cast("string"), RECORD).alias("record"), "partition", "offset")
        .select("record.*", "partition", "offset")
    )
    accounts = records.groupBy("key").transformWithState(
        Accounts(options.plant), OUTPUT, outputMode="Append", timeMode="None"
    )
    return (
        accounts.select("key", f.to_json(f.struct("*")).alias("value"))
        .writeStream.queryName(name)
        .format("kafka")
        .option("kafka.bootstrap.servers", options.brokers)
        .option("topic", options.accounts)
        .outputMode("append")
        .trigger(processingTime=options.trigger)
        .start()
    )


if __name__ == "__main__":
    main()
