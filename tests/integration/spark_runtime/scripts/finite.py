"""Two finite queries, neither of them awaited, in three styles of naming and options."""

import sys

import pyspark
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
source = sys.argv[1]
rows = spark.readStream.schema("value STRING").text(source)
rows.writeStream.option("queryName", "by option").trigger(availableNow=True).format("noop").start()
rows.writeStream.trigger(availableNow=True).toTable("rows_of_the_input", queryName="by_table", format="parquet")
print("PySpark is in", pyspark.__file__)
print("arguments:", sys.argv[1:])
