import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().withColumn("k", F.col("value") % 3)
aggregates = {"n": F.count("*"), "high": F.max("value"), "newest": F.max("timestamp")}
wanted = [aggregates[name].alias(name) for name in sys.argv[1].split(",")]
rows.groupBy("k").agg(*wanted).writeStream.outputMode("update").format("console").trigger(processingTime="2 seconds").start().awaitTermination()
