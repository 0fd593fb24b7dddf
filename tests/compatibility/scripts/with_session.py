import sys

from pyspark.sql import SparkSession

with SparkSession.builder.appName("scoped").getOrCreate() as spark:
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(sys.argv[1])
    lines.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
    print("read", flush=True)
