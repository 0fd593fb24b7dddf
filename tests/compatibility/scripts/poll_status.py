import json
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
query = spark.readStream.format("rate").option("rowsPerSecond", 5).load().writeStream.queryName("polled").format("noop").start()
while query.isActive:
    print(json.dumps(query.status), query.lastProgress is not None, flush=True)
    time.sleep(1)
