"""A writer is kept, and starts its query again each time that somebody stops it: after work, and after a failure."""

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

spark = SparkSession.builder.appName("kept").getOrCreate()
batches = 0


def write(frame: DataFrame, number: int) -> None:
    global batches
    batches += 1
    if batches == 4:
        raise RuntimeError("the sink is away")
    frame.agg({"value": "max"}).collect()


def paused(query: StreamingQuery) -> StreamingQuery:
    while query.lastProgress is None:
        query.awaitTermination(0.2)
    query.stop()
    return writer.start()


rates = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
writer = rates.writeStream.foreachBatch(write).trigger(processingTime="1 second").queryName("kept")
query = paused(writer.start())
print(f"the same query: {query.name}", flush=True)
while True:
    try:
        query.awaitTermination()
    except StreamingQueryException:
        print("started again", flush=True)
    query = writer.start()
