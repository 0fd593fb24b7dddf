"""A builder whose settings Spark does not take, and then, in the same process, another one."""

import contextlib
import sys
from typing import Any

from pyspark import SparkConf
from pyspark.sql import SparkSession

with contextlib.suppress(Exception):
    SparkSession.builder.appName("second try").config("spark.serializer", "org.example.Nope").getOrCreate()
    sys.exit("Spark took it")
kryo = "org.apache.spark.serializer.KryoSerializer"
spark: Any = SparkSession.builder.appName("second try").config("spark.serializer", kryo).getOrCreate()
# A SparkConf that is made now has all that is in force.
again = SparkSession.builder.config(conf=SparkConf()).config("spark.executor.extraJavaOptions", "-Dlate").getOrCreate()
assert again.sparkContext is spark.sparkContext
serializer = spark.sparkContext._jsc.sc().env().serializer()
name = spark.sparkContext.appName
sys.stdout.write(f'found {{"serializer": "{serializer.getClass().getSimpleName()}", "name": "{name}"}}\n')
sys.stdout.flush()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows.writeStream.format("noop").start().awaitTermination()
