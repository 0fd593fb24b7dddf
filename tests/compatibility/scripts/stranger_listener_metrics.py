"""Rate source into a foreach writer, with observed metrics that a StreamingQueryListener in Python appends to a file."""

import json
import os
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQueryListener


class MetricsToFile(StreamingQueryListener):
    def __init__(self, path):
        self.path = path

    def emit(self, **fields):
        with open(self.path, "a") as out:
            out.write(json.dumps({"at": time.time(), **fields}) + "\n")

    def onQueryStarted(self, event):
        self.emit(event="started", id=str(event.id), run=str(event.runId), name=event.name)

    def onQueryProgress(self, event):
        progress = event.progress
        observed = progress.observedMetrics.get("quality")
        self.emit(
            event="progress",
            batch=progress.batchId,
            rows=progress.numInputRows,
            per_second=progress.processedRowsPerSecond,
            sources=[s.description for s in progress.sources],
            sink=progress.sink.description,
            observed=observed.asDict() if observed else None,
        )

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        self.emit(event="terminated", id=str(event.id), error=event.exception)


class RowsToFiles:
    """The ForeachWriter of the programming guide: one file a partition and epoch, so that a repeat overwrites."""

    def __init__(self, folder):
        self.folder = folder

    def open(self, partition_id, epoch_id):
        os.makedirs(self.folder, exist_ok=True)
        self.file = open(os.path.join(self.folder, f"{epoch_id}-{partition_id}.jsonl"), "w")
        return True

    def process(self, row):
        self.file.write(json.dumps({"value": row["value"]}) + "\n")

    def close(self, error):
        self.file.close()


output, metrics, checkpoint = sys.argv[1:4]

spark = SparkSession.builder.appName("listener").master(os.getenv("SPARK_MASTER", "local[2]")).getOrCreate()
listener = MetricsToFile(metrics)
spark.streams.addListener(listener)

stream = (
    spark.readStream.format("rate").option("rowsPerSecond", 20).option("numPartitions", 2).load()
    .observe("quality", F.count(F.lit(1)).alias("n"), F.max("value").alias("highest"))
)
query = (
    stream.writeStream.foreach(RowsToFiles(output))
    .option("checkpointLocation", checkpoint)
    .queryName("numbers")
    .trigger(processingTime="1 second")
    .start()
)

while query.isActive:
    time.sleep(1)
    progress = query.lastProgress
    if progress:
        print(f"batch {progress['batchId']} ({query.status['message']})", flush=True)
    if query.exception():
        raise query.exception()

spark.streams.removeListener(listener)
spark.stop()
