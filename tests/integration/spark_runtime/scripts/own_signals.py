"""The script takes SIGTERM for itself, in the way that its argument names."""

import asyncio
import faulthandler
import signal
import sys
import time

from pyspark.sql import SparkSession

way = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
query = rows.writeStream.format("noop").queryName("counts").trigger(processingTime="1 second").start()


async def run() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("the handler is set", flush=True)
    await stop.wait()
    print("told, and the query is active:", query.isActive, flush=True)


def handle(number: int, frame: object) -> None:
    print("told, and the query is active:", query.isActive, flush=True)
    sys.exit(0)


if way == "asyncio":
    asyncio.run(run())
    query.stop()
    sys.exit(0)
if way == "sigwait":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    print("the handler is set", flush=True)
    signal.sigwait({signal.SIGTERM})
    handle(0, None)
if way == "handler":
    signal.signal(signal.SIGTERM, handle)
elif way == "ignored":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif way == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
else:
    faulthandler.register(signal.SIGTERM)
print("the handler is set", flush=True)
while True:
    time.sleep(0.2)
