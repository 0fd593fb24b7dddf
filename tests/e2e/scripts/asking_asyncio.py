"""asyncio has SIGTERM: its handler asks the loop to end, and the script stops its query."""

import asyncio
import signal

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
counts = rows.groupBy((rows.value % 5).alias("k")).count()
writer = counts.writeStream.outputMode("update").queryName("counts").format("noop")
query = writer.trigger(processingTime="1 second").start()


async def run() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    print("told, and the query is active:", query.isActive, flush=True)


asyncio.run(run())
query.stop()
