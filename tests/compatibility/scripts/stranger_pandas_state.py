"""Running counts per user in applyInPandasWithState; the settings are a dataclass and go to the builder as one map."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout


@dataclass(frozen=True)
class Config:
    input: str
    output: str
    checkpoint: str
    spark: dict[str, Any] = field(
        default_factory=lambda: {
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.streaming.stateStore.providerClass": (
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
            ),
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": True,
            "spark.sql.streaming.minBatchesToRetain": 10,
        }
    )

    @classmethod
    def load(cls, text: str) -> Config:
        source = Path(text)
        return cls(**json.loads(source.read_text() if text.endswith(".json") else text))


def count_user(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    if state.hasTimedOut:
        (count,) = state.get
        state.remove()
        yield pd.DataFrame({"user": [key[0]], "count": [count], "expired": [True]})
        return
    count = state.get[0] if state.exists else 0
    count += sum(len(frame) for frame in frames)
    state.update((count,))
    state.setTimeoutDuration(3_600_000)
    yield pd.DataFrame({"user": [key[0]], "count": [count], "expired": [False]})


def build(spark: SparkSession, config: Config):
    events = spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").json(config.input)
    counted = events.groupBy("user").applyInPandasWithState(
        count_user,
        outputStructType="user STRING, count LONG, expired BOOLEAN",
        stateStructType="count LONG",
        outputMode="append",
        timeoutConf=GroupStateTimeout.ProcessingTimeTimeout,
    )
    return (
        counted.writeStream.outputMode("append")
        .format("json")
        .options(path=config.output, checkpointLocation=config.checkpoint)
        .trigger(processingTime="1 second")
        .queryName("user-counts")
    )


if __name__ == "__main__":
    config = Config.load(sys.argv[1])
    print("configuration:", asdict(config))
    spark = SparkSession.builder.appName("user counts").config(map=config.spark).getOrCreate()
    with spark:
        query = build(spark, config).start()
        query.awaitTermination()
