"""A builder whose settings Spark does not take, in the same process another one without them, and then more."""

import contextlib
import json
import sys
from typing import Any

from pyspark import SparkConf
from pyspark.sql import SparkSession

with contextlib.suppress(Exception):
    nowhere: Any = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:///there/is/no/such/folder"}
    SparkSession.builder.appName("second try").config(map=nowhere).getOrCreate()
    sys.exit("Spark took it")
with contextlib.suppress(Exception):
    SparkSession.builder.appName("second try").config("spark.serializer", "org.example.Nope").getOrCreate()
    sys.exit("Spark took it")
kryo = "org.apache.spark.serializer.KryoSerializer"
options = "-Dasked.by=third"
spark: Any = (
    SparkSession.builder.appName("second try")
    .config("spark.serializer", kryo)
    .config("spark.driver.extraJavaOptions", options)
    .getOrCreate()
)
# A SparkConf that is made now has all that is in force.
again = SparkSession.builder.config(conf=SparkConf()).config("spark.executor.extraJavaOptions", "-Dlate").getOrCreate()
assert again.sparkContext is spark.sparkContext
context: Any = spark.sparkContext
found = {
    "serializer": context._jsc.sc().env().serializer().getClass().getSimpleName(),
    "name": context.appName,
    "log": context.getConf().get("spark.eventLog.enabled"),
    "java": context._jvm.System.getProperty("asked.by"),
}
sys.stdout.write(f"found {json.dumps(found)}\n")
sys.stdout.flush()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows.writeStream.format("noop").start().awaitTermination()
