"""Newest row per user kept in a SQLite table by foreachBatch, as a MERGE would; places come from environment variables."""

import os
import sqlite3
from contextlib import closing
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

INPUT = os.environ["ORDERS_INPUT"]
DATABASE = os.environ["ORDERS_DATABASE"]
CHECKPOINT = os.environ.get("CHECKPOINT_LOCATION", "/tmp/orders-checkpoint")

spark = SparkSession.builder.appName("orders-upsert").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", 2)
spark.conf.set("spark.sql.session.timeZone", "UTC")


def prepare(database):
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS users (user TEXT PRIMARY KEY, id INTEGER, amount REAL, seen INTEGER)")
        db.execute("CREATE TABLE IF NOT EXISTS batches (batch INTEGER PRIMARY KEY, n INTEGER)")


def upsert(database, micro_batch, batch_id):
    micro_batch.persist()
    try:
        micro_batch.createOrReplaceTempView("updates")
        latest = micro_batch.sparkSession.sql(
            "SELECT user, max_by(id, id) AS id, max_by(amount, id) AS amount, count(*) AS n FROM updates GROUP BY user"
        )
        rows = [tuple(r) for r in latest.collect()]
        n = micro_batch.count()
        with closing(sqlite3.connect(database)) as db, db:
            if db.execute("SELECT 1 FROM batches WHERE batch = ?", (batch_id,)).fetchone():
                print(f"batch {batch_id} is written already, skipping", flush=True)
                return
            db.executemany(
                "INSERT INTO users VALUES (?, ?, ?, ?) ON CONFLICT (user) DO UPDATE SET "
                "id = excluded.id, amount = excluded.amount, seen = users.seen + excluded.seen",
                rows,
            )
            db.execute("INSERT INTO batches VALUES (?, ?)", (batch_id, n))
        print(f"batch {batch_id}: {n} rows, {len(rows)} users", flush=True)
    finally:
        micro_batch.unpersist()


prepare(DATABASE)

raw = spark.readStream.text(INPUT)
orders = raw.select(F.from_json("value", "id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").alias("o")).select("o.*")

(
    orders.writeStream.foreachBatch(partial(upsert, DATABASE))
    .outputMode("update")
    .option("checkpointLocation", CHECKPOINT)
    .trigger(processingTime="500 milliseconds")
    .start()
    .awaitTermination()
)
