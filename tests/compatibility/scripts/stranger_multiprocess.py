"""Batches handed to worker processes: a spawned writer fed by a queue, and a process pool inside foreachBatch."""

import json
import multiprocessing as mp
import os
import sys
from concurrent.futures import ProcessPoolExecutor


def score(amount):
    """A pure function that the pool runs."""
    return os.getpid(), round(amount * 2, 2)


def writer(folder, queue):
    """The process that owns the files."""
    os.makedirs(folder, exist_ok=True)
    for batch_id, rows in iter(queue.get, None):
        path = os.path.join(folder, f"{batch_id}.json")
        with open(path + ".part", "w") as out:
            json.dump(rows, out)
        os.replace(path + ".part", path)
        queue.task_done()
    queue.task_done()


def main(source, target, checkpoint):
    from pyspark.sql import SparkSession

    ctx = mp.get_context("spawn")
    queue = ctx.JoinableQueue()
    process = ctx.Process(target=writer, args=(target, queue), daemon=True)
    process.start()

    spark = SparkSession.builder.appName("multiprocess").getOrCreate()
    with ProcessPoolExecutor(2, mp_context=ctx) as pool:

        def handle(df, batch_id):
            rows = [(r["id"], r["amount"]) for r in df.select("id", "amount").collect()]
            scores = list(pool.map(score, [amount for _, amount in rows]))
            queue.put((batch_id, [[i, s] for (i, _), (_, s) in zip(rows, scores)]))
            queue.join()
            print(f"batch {batch_id}: {len(rows)} rows", flush=True)

        stream = spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").json(source)
        query = stream.writeStream.foreachBatch(handle).option("checkpointLocation", checkpoint).start()
        query.awaitTermination()
    queue.put(None)
    process.join(5)
    spark.stop()


if __name__ == "__main__":
    mp.freeze_support()
    main(*sys.argv[1:4])
