"""Starts its unnamed query again in a loop, as often as a batch fails; each time with a source that is made again."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

spark = SparkSession.builder.getOrCreate()
batches: list[int] = []


def write(rows: DataFrame, batch: int) -> None:
    print("batch", batch, "rows", rows.count(), flush=True)
    batches.append(batch)
    if len(batches) in (2, 4):
        raise RuntimeError("the sink is not there")


def start() -> StreamingQuery:
    rows = spark.readStream.format(sys.argv[1]).option("rowsPerBatch", 5).load()
    return rows.writeStream.foreachBatch(write).trigger(processingTime="1 second").start()


while True:
    query = start()
    try:
        query.awaitTermination()
    except Exception as error:
        print("again after", type(error).__name__, flush=True)
        spark.streams.resetTerminated()
