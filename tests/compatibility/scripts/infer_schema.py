import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
static = spark.read.json(sys.argv[1])
stream = spark.readStream.schema(static.schema).option("maxFilesPerTrigger", 2).json(sys.argv[1])
stream.writeStream.format("csv").option("header", "true").option("path", sys.argv[2]).trigger(availableNow=True).start().awaitTermination()
print("lines", spark.read.option("header", "true").csv(sys.argv[2]).count(), flush=True)
