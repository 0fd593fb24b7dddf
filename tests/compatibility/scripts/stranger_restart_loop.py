"""Two queries watched by awaitAnyTermination: the one that failed is started again from its checkpoint, three times at most."""

import logging
import os
import sys
import time
from collections import Counter
from typing import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.streaming import StreamingQuery

logging.basicConfig(level=logging.INFO, format="[%(name)s] %(message)s", force=True)
log = logging.getLogger("supervisor")

MAX_RESTARTS = 3
source, out, checkpoints = sys.argv[1], sys.argv[2], sys.argv[3]


def fail_once(value: int) -> int:
    """A passing trouble: the first row with id 7 fails until a marker file is there."""
    marker = os.path.join(out, "failed-once")
    if value == 7 and not os.path.exists(marker):
        os.makedirs(out, exist_ok=True)
        open(marker, "w").close()
        raise ConnectionError("the lookup service is away")
    return value


spark = SparkSession.builder.appName("supervisor").config("spark.task.maxFailures", "1").getOrCreate()
events = spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").json(source)
checked = udf(fail_once, "long")


def start_big() -> StreamingQuery:
    return (
        events.filter(col("amount") >= 50).select(checked("id").alias("id"), "amount")
        .writeStream.queryName("big").format("json").option("path", f"{out}/big")
        .option("checkpointLocation", f"{checkpoints}/big").trigger(processingTime="1 second").start()
    )


def start_small() -> StreamingQuery:
    return (
        events.filter(col("amount") < 50).select(checked("id").alias("id"), "amount")
        .writeStream.queryName("small").format("json").option("path", f"{out}/small")
        .option("checkpointLocation", f"{checkpoints}/small").trigger(processingTime="1 second").start()
    )


starters: dict[str, Callable[[], StreamingQuery]] = {"big": start_big, "small": start_small}
queries = {name: start() for name, start in starters.items()}
restarts: Counter[str] = Counter()

while True:
    try:
        spark.streams.awaitAnyTermination()
    except StreamingQueryException as error:
        log.warning("a query failed: %s", str(error).splitlines()[0])
    spark.streams.resetTerminated()
    ended = [name for name, query in queries.items() if not query.isActive]
    if ended and all(queries[name].exception() is None for name in ended):
        log.info("stopped: %s", ended)
        break
    for name in ended:
        restarts[name] += 1
        if restarts[name] > MAX_RESTARTS:
            log.error("%s failed too often", name)
            sys.exit(2)
        log.info("starting %s again (%d)", name, restarts[name])
        time.sleep(0.2)
        queries[name] = starters[name]()

for query in spark.streams.active:
    query.stop()
