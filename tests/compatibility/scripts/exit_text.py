import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
if spark.range(3).filter("id > 5").isEmpty():
    sys.exit("no orders to work on: is the catalog loaded?")
