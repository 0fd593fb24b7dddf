"""A service: a context manager around Spark, FAIR pools from a file that the script writes, a queue for the log, settings changed in a batch."""

import atexit
import contextlib
import logging
import logging.handlers
import os
import queue
import signal
import tempfile
import threading
import types

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

POOLS = """<?xml version="1.0"?>
<allocations>
  <pool name="urgent"><schedulingMode>FAIR</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="rest"><schedulingMode>FIFO</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>
"""


def set_up_logging(folder):
    os.makedirs(folder, exist_ok=True)
    lines = queue.SimpleQueue()
    file = logging.handlers.RotatingFileHandler(os.path.join(folder, "service.log"), maxBytes=100_000, backupCount=2)
    file.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    listener = logging.handlers.QueueListener(lines, file, logging.StreamHandler(), respect_handler_level=True)
    logging.getLogger().handlers[:] = [logging.handlers.QueueHandler(lines)]
    logging.getLogger().setLevel(logging.INFO)
    for noisy in ("py4j", "py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    listener.start()
    atexit.register(logging.shutdown)
    atexit.register(listener.stop)


@contextlib.contextmanager
def spark_session(**settings):
    builder = SparkSession.Builder()
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        for each in session.streams.active:
            logging.info("stopping %s", each.name)
            each.stop()
        session.stop()


class Service:
    def __init__(self, base):
        self.base = base
        self.stop = threading.Event()
        self.previous = {number: signal.signal(number, self.on_signal) for number in (signal.SIGTERM, signal.SIGINT)}

    def on_signal(self, number: int, frame: types.FrameType | None):
        logging.warning("got %s", signal.strsignal(number))
        self.stop.set()

    def urgent(self, df, batch):
        session = df.sparkSession
        session.sparkContext.setLocalProperty("spark.scheduler.pool", "urgent")
        before = session.conf.get("spark.sql.shuffle.partitions")
        session.conf.set("spark.sql.shuffle.partitions", "1")
        session.conf.set("spark.sql.files.maxRecordsPerFile", 1000)
        try:
            df.groupBy("user").agg(F.max("amount").alias("largest")).write.mode("overwrite").parquet(f"{self.base}/urgent/{batch}")
        finally:
            session.conf.set("spark.sql.shuffle.partitions", before)
            session.sparkContext.setLocalProperty("spark.scheduler.pool", None)

    def start(self, spark):
        source = spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").json(f"{self.base}/in")
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", "urgent")
        yield source.writeStream.queryName("urgent").foreachBatch(self.urgent).option(
            "checkpointLocation", f"{self.base}/checkpoints/urgent"
        ).start()
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", "rest")
        yield (
            source.withWatermark("ts", "1 minute").groupBy("user", F.window("ts", "1 minute")).agg(F.sum("amount"))
            .writeStream.queryName("rest").outputMode("update").format("memory").queryName("rest")
            .option("checkpointLocation", f"{self.base}/checkpoints/rest").start()
        )

    def run(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml", delete=False) as file:
            file.write(POOLS)
        settings = {"spark__scheduler__mode": "FAIR", "spark__scheduler__allocation__file": f"file://{file.name}"}
        with spark_session(**settings, spark__sql__shuffle__partitions=3) as spark:
            queries = list(self.start(spark))
            while not self.stop.wait(1):
                for each in queries:
                    if not each.isActive:
                        raise RuntimeError(f"{each.name} ended: {each.exception()}")
                logging.info("rows in memory: %d", spark.table("rest").count())
        logging.info("stopped cleanly")


if __name__ == "__main__":
    os.umask(0o027)
    set_up_logging(os.environ["SERVICE_HOME"] + "/log")
    Service(os.environ["SERVICE_HOME"]).run()
