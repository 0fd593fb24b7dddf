"""A Python pipeline that may take part in the control stream: rows with an amount over a limit go on.

``judging.py ROWS alternate WARM COUNTED KIND…`` runs the same pipeline ``with`` control messages and ``without``, as
the kinds say, one after the other in this one process: each until so many batches are committed, back to back, then it
ends between two of them.

``judging.py ROWS run FOLDER [SECONDS]`` runs it with control messages until it is stopped, by a trigger if seconds are
given; each task writes down in the folder what was in force when it asked first, and when.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark import control
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.stopping import stop_at_boundary

WITH = "with"
LIMIT = 50.0
"""About half of the rows have a larger amount."""
SCHEMA = "value long, amount double"
Frames = Iterator[pd.DataFrame]
POLL_SECONDS, LAST_SECONDS = 0.1, 300.0


def fixed() -> float:
    """Return the limit of a program that nobody can tell anything."""
    return LIMIT


def reported() -> float:
    """Return the limit that is in force."""
    return control.current().get("limit", LIMIT, float)


def judging(limit: Callable[[], float], note: Callable[[], None]) -> Callable[[Frames], Frames]:
    """Return the function of the pipeline; ``note`` is called once in each task, before its first rows."""

    def judge(frames: Frames) -> Frames:
        for number, frame in enumerate(frames):
            if number == 0:
                note()
            yield frame[frame["amount"] > limit()]

    return judge


def nothing() -> None:
    """Note nothing."""


def noting(folder: str) -> Callable[[], None]:
    """Return what writes down what is in force now, in a file of this worker."""

    def note() -> None:
        now = control.current()
        use = {"time": time.time(), "batch": now.batch, "settings": dict(now.config)}
        with (Path(folder) / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(use) + "\n")

    return note


def rows(spark: SparkSession, number: int) -> DataFrame:
    """Return a stream of so many rows in each batch, made as they are read."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", number).option("numPartitions", 2)
    made = rate.option("advanceMillisPerBatch", 1000).option("startTimestamp", 1_000_000).load()
    return made.select("value", (f.pmod(f.xxhash64("value"), f.lit(1000)) / 10).alias("amount"))


def start(read: DataFrame, kind: str, note: Callable[[], None] = nothing, seconds: float = 0.0) -> StreamingQuery:
    """Start the pipeline of a kind."""
    source, limit = (control.controlled(read), reported) if kind == WITH else (read, fixed)
    writer = source.mapInPandas(judging(limit, note), SCHEMA).writeStream.queryName(kind).format("noop")
    return (writer.trigger(processingTime=f"{round(seconds * 1000)} milliseconds") if seconds else writer).start()


def alternate(read: DataFrame, warm: int, counted: int, kinds: list[str]) -> None:
    """Run windows of batches, and say which batches of which query are to be counted."""
    committed = dict.fromkeys(kinds, -1)
    for kind in kinds:
        query, last = start(read, kind), committed[kind] + warm + counted
        while newest(query) < last:
            if not query.isActive:
                raise RuntimeError(f"query {kind!r} ended: {query.exception()}")
            time.sleep(POLL_SECONDS)
        entry = Entry(kind, "", True, query)
        (stopped,) = stop_at_boundary([entry], time.monotonic() + LAST_SECONDS, LAST_SECONDS)
        if stopped.commits is None:
            raise RuntimeError(f"query {kind!r} was not stopped")
        committed[kind] = stopped.commits
        print(f"window {json.dumps({'kind': kind, 'first': last - counted, 'last': last})}", flush=True)


def newest(query: StreamingQuery) -> int:
    """Return the newest batch that was told of, -1 if none was: by two short calls, since it is asked all the time."""
    progress = query._jsq.lastProgress()
    return -1 if progress is None else int(progress.batchId())


def main() -> None:
    """Do what the arguments say."""
    number, mode, *rest = sys.argv[1:]
    control.config(limit=float)
    spark = SparkSession.builder.getOrCreate()
    read = rows(spark, int(number))
    if mode == "alternate":
        alternate(read, int(rest[0]), int(rest[1]), rest[2:])
    else:
        start(read, WITH, noting(rest[0]), float(rest[1]) if len(rest) > 1 else 0.0).awaitTermination()


if __name__ == "__main__":
    main()
