import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
failed = set()


def flaky(name):
    def write(df, batch_id):
        df.count()
        if batch_id == 1 and name not in failed:
            failed.add(name)
            raise IOError(f"{name}: sink is away")

    return write


def start(name):
    rows = spark.readStream.format("rate").load()
    return rows.writeStream.queryName(name).foreachBatch(flaky(name)).trigger(processingTime="1 second").start()


running = {name: start(name) for name in ("left", "right")}
while True:
    try:
        spark.streams.awaitAnyTermination()
    except Exception as error:
        print("one ended:", type(error).__name__, flush=True)
    spark.streams.resetTerminated()
    for name, query in running.items():
        if not query.isActive:
            time.sleep(1)
            running[name] = start(name)
