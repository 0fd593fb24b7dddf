import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def append_to(folder):
    return lambda df, epoch: df.write.mode("append").json(folder)


for name in ("web", "shop"):
    rows = spark.readStream.format("rate").option("rowsPerSecond", 2).option("numPartitions", 1).load()
    rows.writeStream.queryName(name).foreachBatch(append_to(f"{sys.argv[1]}/from={name}")).trigger(processingTime="2 seconds").start()
spark.streams.awaitAnyTermination()
