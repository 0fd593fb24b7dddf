import asyncio
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


async def run(name):
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(sys.argv[1])
    query = lines.writeStream.queryName(name).format("noop").trigger(availableNow=True).start()
    await asyncio.to_thread(query.awaitTermination)


async def main():
    await asyncio.gather(run("left"), run("right"))


asyncio.run(main())
print("both are done", flush=True)
