"""A child process that asks for Spark, which its parent has not."""

import multiprocessing
import sys

from pyspark.sql import SparkSession

child = multiprocessing.get_context("fork").Process(target=SparkSession.builder.getOrCreate)
child.start()
child.join()
sys.exit(f"the child process ended with {child.exitcode}")
