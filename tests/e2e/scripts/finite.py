"""Does what there is to do and ends."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(1000).write.mode("overwrite").parquet(sys.argv[1])
print("counted", spark.read.parquet(sys.argv[1]).count(), flush=True)
