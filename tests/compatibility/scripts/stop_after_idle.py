import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
lines = spark.readStream.option("maxFilesPerTrigger", 1).text(sys.argv[1])
query = lines.writeStream.format("noop").trigger(processingTime="500 milliseconds").start()
query.processAllAvailable()
query.stop()
print("drained", flush=True)
