"""A poor man's scheduler: a query with availableNow, run again and again, merges the newest rows into a Parquet folder."""

import datetime as dt
import os
import shutil
import time

if "spark" not in globals():
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("merge-every-minute").getOrCreate()

if "display" not in globals():

    def display(df):
        df.show(5, truncate=False)


from pyspark.sql import Window
from pyspark.sql import functions as F

base = os.environ["BASE_PATH"]
env = os.environ.get("APP_ENV", "staging")
table = f"{base}/{env}/users"
checkpoint = f"/dbfs/checkpoints/{env}/users"
every = dt.timedelta(seconds=float(os.environ.get("INTERVAL_SECONDS", "1")))


def current_version():
    pointer = f"{table}/_current"
    return int(open(pointer).read()) if os.path.exists(pointer) else -1


def merge(updates, batch_id):
    """MERGE INTO by hand: the newest row a user wins; a new folder is written, and then the pointer moves to it."""
    session = updates.sparkSession
    session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    if current_version() >= batch_id:
        return
    newest = Window.partitionBy("user").orderBy(F.col("id").desc())
    merged = updates
    if current_version() >= 0:
        merged = session.read.parquet(f"{table}/v{current_version()}").unionByName(updates, allowMissingColumns=True)
    merged = merged.withColumn("n", F.row_number().over(newest)).filter("n = 1").drop("n")
    merged.repartition(1).write.mode("overwrite").option("compression", "snappy").parquet(f"{table}/v{batch_id}")
    with open(f"{table}/_next", "w") as pointer:
        pointer.write(str(batch_id))
    os.replace(f"{table}/_next", f"{table}/_current")
    shutil.rmtree(f"{table}/v{batch_id - 5}", ignore_errors=True)


while True:
    began = dt.datetime.now()
    query = (
        spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP")
        .json(f"{base}/in")
        .writeStream.queryName("users-merge")
        .foreachBatch(merge)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = query.lastProgress
    print(f"run {query.runId}: {progress['numInputRows'] if progress else 0} rows", flush=True)
    if current_version() >= 0:
        display(spark.read.parquet(f"{table}/v{current_version()}"))
    time.sleep(max(0.0, (every - (dt.datetime.now() - began)).total_seconds()))
