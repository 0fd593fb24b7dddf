"""Computes with a module beside it, and says what it was given; an argument names one that only the driver has."""

import importlib
import sys

import beside_helper  # type: ignore[import-not-found] # it is found beside this file
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
print("given:", *sys.argv[1:])
doubled = f.udf(beside_helper.doubled, "long")
print("doubled:", [row[0] for row in spark.range(3).select(doubled("id")).collect()])
if len(sys.argv) > 2:
    sys.path.append(sys.argv[2])
    of_driver = importlib.import_module("of_driver")

    spark.range(1).select(f.udf(of_driver.one, "long")("id")).collect()
