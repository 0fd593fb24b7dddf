import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
for name in sys.argv[1:]:
    rows.groupBy().count().writeStream.queryName(name).outputMode("complete").format("noop").trigger(processingTime="1 second").start()
spark.streams.awaitAnyTermination()
