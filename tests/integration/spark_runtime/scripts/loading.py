"""Loads what there is into files, and ends. Arguments: the query's name, its checkpointLocation, input and output."""

import sys

from pyspark.sql import SparkSession

name, location, source, out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
writer = spark.readStream.text(source).writeStream.queryName(name).option("checkpointLocation", location)
writer.trigger(availableNow=True).format("json").start(out).awaitTermination()
