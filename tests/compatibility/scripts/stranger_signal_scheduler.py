"""A long-running service: signal handlers, a scheduler thread that reloads a lookup and restarts nothing, a stop file, and os._exit at the end."""

import atexit
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

base = Path(sys.argv[1])
stopping = threading.Event()
lookup_lock = threading.Lock()
lookup = {"factor": 1, "loads": 0}


def on_signal(number, _frame):
    print(f"signal {signal.Signals(number).name}, stopping", flush=True)
    stopping.set()


signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGINT, on_signal)
atexit.register(lambda: print("atexit ran", flush=True))


def refresh_forever(spark):
    """Every half second: the lookup is read again with Spark, as a scheduler would."""
    while not stopping.wait(0.5):
        path = base / "lookup.json"
        if path.exists():
            row = spark.read.json(str(path)).first()
            with lookup_lock:
                lookup.update(factor=row["factor"], loads=lookup["loads"] + 1)
        spark.catalog.clearCache()


def write(df, batch_id):
    with lookup_lock:
        factor = lookup["factor"]
    rows = df.withColumn("scaled", F.col("amount") * F.lit(factor)).select("id", "scaled").collect()
    target = base / "out" / f"{batch_id}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps([r.asDict() for r in rows]))


def main():
    spark = SparkSession.builder.appName("service").getOrCreate()
    threading.Thread(target=refresh_forever, args=(spark,), name="scheduler", daemon=True).start()
    query = (
        spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
        .json(str(base / "in")).writeStream.foreachBatch(write)
        .option("checkpointLocation", str(base / "checkpoint")).trigger(processingTime="1 second").start()
    )
    try:
        while not stopping.is_set() and not query.awaitTermination(1):
            if (base / "STOP").exists():
                print("stop file found", flush=True)
                stopping.set()
    finally:
        while query.isActive and query.status["isTriggerActive"]:
            time.sleep(0.1)
        query.stop()
        spark.stop()
    print("bye", flush=True)
    sys.stdout.flush()
    os._exit(0)


main()
