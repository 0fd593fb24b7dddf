import sys
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def once():
    lines = spark.readStream.option("maxFilesPerTrigger", 3).text(sys.argv[1])
    lines.writeStream.queryName("hourly").format("noop").trigger(availableNow=True).start().awaitTermination()


for _ in range(3):
    once()
    print("round", flush=True)
    time.sleep(1)
