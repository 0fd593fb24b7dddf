import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def append(df, epoch):
    df.write.mode("append").json(sys.argv[1])


for name in ("web", "shop"):
    rows = spark.readStream.format("rate").option("rowsPerSecond", 2).option("numPartitions", 1).load()
    rows.writeStream.queryName(name).foreachBatch(append).trigger(processingTime="2 seconds").start()
spark.streams.awaitAnyTermination()
