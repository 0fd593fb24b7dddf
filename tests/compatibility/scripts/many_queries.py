import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
for i in range(int(sys.argv[1])):
    rows.writeStream.queryName(f"q{i}").format("noop").trigger(processingTime="20 seconds").start()
spark.streams.awaitAnyTermination()
