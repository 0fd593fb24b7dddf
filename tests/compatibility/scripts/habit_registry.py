"""Queries register themselves by a decorator; tenacity starts again what failed, with a back-off; a supervisor checks all of them."""

import functools
import logging
import os
import pathlib
import signal
import threading
import time

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tenacity import before_sleep_log, retry, retry_if_exception_type, stop_after_attempt, wait_exponential

logging.basicConfig(level="INFO", format="%(levelname)s %(threadName)s: %(message)s")
log = logging.getLogger("registry")
REGISTRY = {}
stopping = threading.Event()


def streaming(name=None, *, trigger="1 second", mode="append", sink="noop", **options):
    """Register what makes a DataFrame as a query."""

    def register(function):
        @functools.wraps(function)
        def start(spark):
            writer = function(spark).writeStream.queryName(name or function.__name__).outputMode(mode)
            if callable(sink):
                writer = writer.foreachBatch(sink)
            else:
                writer = writer.format(sink)
            checkpoint = os.path.join(os.environ["CHECKPOINTS"], name or function.__name__)
            return writer.options(checkpointLocation=checkpoint, **options).trigger(processingTime=trigger).start()

        REGISTRY[name or function.__name__] = start
        return start

    return register


def flaky_sink(df, batch_id):
    """The warehouse is away once in a while; it comes back after a minute or so."""
    marker = pathlib.Path(os.environ["OUT"], f"away-{batch_id % 4}")
    if batch_id % 4 == 1 and not marker.exists():
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        raise TimeoutError("the warehouse does not answer")
    df.write.format("csv").option("header", True).mode("append").save(os.environ["OUT"] + "/warehouse")


@streaming(trigger="500 milliseconds", sink=flaky_sink)
def warehouse(spark):
    return spark.readStream.table("payments").filter("amount > 1")


@streaming("totals-by-user", mode="complete")
def totals(spark):
    return spark.readStream.table("payments").groupBy("user").agg(F.sum("amount").alias("total"))


@streaming(mode="update", sink="console", truncate="false")
def counts_by_minute(spark):
    return spark.sql("SELECT window(ts, '1 minute').start AS minute, count(*) AS n FROM STREAM payments GROUP BY 1")


def keep_running(spark, name):
    @retry(
        retry=retry_if_exception_type((StreamingQueryException, PySparkException)),
        wait=wait_exponential(multiplier=0.2, max=5),
        stop=stop_after_attempt(10),
        before_sleep=before_sleep_log(log, logging.WARNING),
        reraise=True,
    )
    def run():
        query = REGISTRY[name](spark)
        while not stopping.is_set():
            if query.awaitTermination(1):
                break
        query.stop()

    run()


def main():
    spark = SparkSession.builder.getOrCreate()
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS payments (id LONG, user STRING, amount DOUBLE, ts TIMESTAMP) USING json LOCATION '{os.environ['IN']}'"
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    threads = [threading.Thread(target=keep_running, args=(spark, name), name=name) for name in REGISTRY]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        log.info("active: %s", sorted(query.name for query in spark.streams.active))
        time.sleep(2)
    log.info("all have ended")


if __name__ == "__main__":
    main()
