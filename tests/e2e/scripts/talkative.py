"""Compares its arguments with those that it was to get, does something, and ends."""

import sys

from pyspark.sql import SparkSession

assert sys.argv[1:] == ["x" * 4000] * 40, f"{len(sys.argv) - 1} arguments"
print("counted", SparkSession.builder.getOrCreate().range(1000).count(), flush=True)
