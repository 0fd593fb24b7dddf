import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
query = spark.readStream.format("rate").load().writeStream.format("noop").trigger(processingTime="1 second").start()
while not query.awaitTermination(2):
    print("alive", time.strftime("%H:%M:%S"), query.isActive, flush=True)
