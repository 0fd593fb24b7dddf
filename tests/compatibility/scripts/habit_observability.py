"""A state machine by user with timeouts of event time; a listener writes JSON lines, and a Prometheus client serves the same on a port of its own."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructType

source, folder = sys.argv[1:3]
registry = CollectorRegistry()
rows = Counter("job_rows_total", "Rows that came in.", ["query"], registry=registry)
lag = Gauge("job_state_rows", "Rows of state.", ["query"], registry=registry)
took = Histogram("job_batch_seconds", "How long a batch took.", ["query"], registry=registry)
up = Gauge("job_up", "Whether the query runs.", ["query"], registry=registry)
server, _ = start_http_server(0, registry=registry)
print(f"metrics on port {server.server_port}", flush=True)


class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        active = [query.name for query in SparkSession.getActiveSession().streams.active] if SparkSession.getActiveSession() else []
        body = json.dumps({"active": active}).encode()
        self.send_response(200 if active else 503)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args): ...


health = ThreadingHTTPServer(("0.0.0.0", 0), Health)
threading.Thread(target=health.serve_forever, daemon=True).start()


class ToFile(StreamingQueryListener):
    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.file = open(path, "a", buffering=1)
        self.names = {}

    def _write(self, kind, **fields):
        self.file.write(json.dumps({"event": kind, **fields}) + "\n")

    def onQueryStarted(self, event):
        self.names[event.id] = event.name
        up.labels(event.name).set(1)
        self._write("started", id=str(event.id), name=event.name, at=event.timestamp)

    def onQueryProgress(self, event):
        progress = event.progress
        rows.labels(progress.name).inc(progress.numInputRows)
        took.labels(progress.name).observe(progress.batchDuration / 1000)
        for operator in progress.stateOperators:
            lag.labels(progress.name).set(operator.numRowsTotal)
        self._write("progress", **json.loads(progress.json))

    def onQueryIdle(self, event):
        self._write("idle", id=str(event.id))

    def onQueryTerminated(self, event):
        up.labels(self.names.get(event.id, "?")).set(0)
        self._write("terminated", id=str(event.id), error=event.exception)


state_type = StructType().add("n", LongType()).add("total", DoubleType())
output_type = StructType().add("user", StringType()).add("n", LongType()).add("total", DoubleType()).add("over", BooleanType())


def follow(key: tuple, batches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    (user,) = key
    n, total = state.get if state.exists else (0, 0.0)
    if state.hasTimedOut:
        state.remove()
        yield pd.DataFrame({"user": [user], "n": [n], "total": [total], "over": [True]})
        return
    latest = 0
    for frame in batches:
        n, total = n + len(frame), total + float(frame["amount"].sum())
        latest = max(latest, int(frame["ts"].max().timestamp() * 1000))
    state.update((n, total))
    state.setTimeoutTimestamp(max(latest, state.getCurrentWatermarkMs()) + 60_000)
    yield pd.DataFrame({"user": [user], "n": [n], "total": [total], "over": [False]})


spark = (
    SparkSession.builder.appName("observability")
    .config("spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    .config("spark.sql.streaming.metricsEnabled", "true")
    .config("spark.metrics.namespace", "observability")
    .config("spark.ui.prometheus.enabled", "true")
    .config("spark.sql.streaming.numRecentProgressUpdates", "3")
    .getOrCreate()
)
listener = ToFile(f"{folder}/log/events.jsonl")
spark.streams.addListener(listener)

events = spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").json(source).withWatermark("ts", "1 minute")
followed = events.groupBy("user").applyInPandasWithState(follow, output_type, state_type, "update", GroupStateTimeout.EventTimeTimeout)
query = (
    followed.writeStream.queryName("follow").outputMode("update")
    .foreachBatch(lambda df, batch: df.write.mode("overwrite").json(f"{folder}/out/batch={batch}"))
    .option("checkpointLocation", f"file://{folder}/checkpoint").trigger(processingTime="2 seconds").start()
)
try:
    spark.streams.awaitAnyTermination()
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    spark.streams.removeListener(listener)
    if query.exception():
        print(query.exception(), file=sys.stderr)
    health.shutdown()
