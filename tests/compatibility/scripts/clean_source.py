import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
files = spark.readStream.option("maxFilesPerTrigger", 1).option("cleanSource", "delete").text(sys.argv[1])
files.writeStream.format("noop").trigger(processingTime="8 seconds").start().awaitTermination()
