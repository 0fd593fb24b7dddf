"""Asks for an array in each row that no executor's heap has room for."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
arrays = rows.select(f.size(f.expr("array_repeat(value, cast(400000000 + value % 2 AS int))")).alias("size"))
arrays.writeStream.format("noop").queryName("hungry").start().awaitTermination()
