"""A stream whose batches go over Spark's ports: at each line on standard input it works a folder off, and tells how.

``shuffling.py FOLDER SETTINGS``: FOLDER holds files, one of which is a batch; SETTINGS is JSON. Each answer is a line:
seconds and rows of each batch but the first, which compiles.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

PAYLOAD = "repeat(uuid(), 4)"
"""Bytes that cannot be left out of what is sent: 144 a row."""


def main() -> None:
    """Start Spark, answer to lines until there are no more."""
    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    # Executors are started by Spark's own scripts, which look here.
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    answer({"ready": True})
    for _ in sys.stdin:
        answer({"batches": trial(spark, folder)})
    spark.stop()


def answer(said: object) -> None:
    """Write one line for whoever asked."""
    print(json.dumps(said), flush=True)


def trial(spark: SparkSession, folder: Path) -> list[tuple[float, int]]:
    """Work all files off, one a batch."""
    read = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).csv(str(folder))
    widened = read.selectExpr("id % 10007 as key", f"{PAYLOAD} as payload")
    counted = widened.repartition("key").selectExpr("key", "length(payload) as bytes").groupBy("key").sum("bytes")
    with tempfile.TemporaryDirectory() as checkpoint:
        query = started(counted, checkpoint)
        query.awaitTermination()
        reported = query.recentProgress
    # Milliseconds in Spark's own words.
    return [
        (each["durationMs"]["triggerExecution"] / 1000, each["numInputRows"])
        for each in reported
        if each["batchId"] > 0
    ]


def started(stream: DataFrame, checkpoint: str) -> StreamingQuery:
    """Have it run until there are no more files."""
    writer = stream.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


if __name__ == "__main__":
    main()
