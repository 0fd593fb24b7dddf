"""Does what messages say, and says what it does, with a query for each way to take part; its argument is a folder.

``main`` asks in its workers and in its driver. ``windows`` closes windows by a watermark. ``records`` reads messages as
a stream, ``files`` a folder. ``late`` takes no part, unless LATE says so.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidegate_spark import control

spark = SparkSession.builder.getOrCreate()
rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 2)
rows = rate.option("advanceMillisPerBatch", 1000).option("startTimestamp", 1_000_000).load()
control.config(limit=float, hold=str)


@control.on("table", schema={"rows": int})
def table(message: control.Message) -> int:
    """Keep a number in each worker, unless it is none that is meant."""
    if message.payload["rows"] < 0:
        raise ValueError("no table has less than nothing")
    return int(message.payload["rows"])


@control.on_driver("tell")
def report(message: control.Message) -> None:
    """Say it."""
    say("driver", message.payload)


def say(word: str, what: Any) -> None:
    """Write a line as a whole: several queries do at a time."""
    sys.stdout.write(f"{word} {json.dumps(what)}\n")
    sys.stdout.flush()


def asked(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Say what is in force, once for each part of a batch."""
    for frame in frames:
        now = control.current()
        said = [now.batch, now.position, now.get("limit", 1.0, float), now.made("table")]
        yield pd.DataFrame({"said": [json.dumps(said)], "rows": [len(frame)]})


def report_main(batch: DataFrame, number: int) -> None:
    """Say what its workers said, and what the driver reads of the same batch; then wait for the file that it names."""
    found: list[Any] = sorted({row["said"] for row in batch.collect()})
    now = control.current()
    say("main", [number, now.position, [json.loads(each) for each in found]])
    wanted = now.get("hold", "", str)
    while wanted and not Path(wanted).exists():
        time.sleep(0.1)


def report_rows(name: str) -> Any:
    """Return what says each row of a batch."""

    def report_each(batch: DataFrame, number: int) -> None:
        for row in batch.collect():
            say(name, [number, *(str(value) for value in row)])

    return report_each


def start(name: str, read: DataFrame, report_batch: Any) -> None:
    """Start a query."""
    writer = read.writeStream.queryName(name).trigger(processingTime="2 seconds")
    writer.foreachBatch(report_batch).start()


windows = control.controlled(rows).withWatermark("timestamp", "2 seconds")
late = control.controlled(rows) if os.environ.get("LATE") else rows
files = spark.readStream.schema("value long").json(sys.argv[1])
start("records", control.stream(spark).select("sequence", "type", "payload"), report_rows("records"))
start("files", control.controlled(files), report_rows("files"))
start("late", late.select("value").limit(1), report_rows("late"))
start("main", control.controlled(rows).mapInPandas(asked, "said string, rows long"), report_main)
start("windows", windows.groupBy(f.window("timestamp", "1 second")).count().select("count"), report_rows("windows"))
spark.streams.awaitAnyTermination()
