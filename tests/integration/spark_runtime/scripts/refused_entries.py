"""A way to Spark that does not run here, by the argument."""

import contextlib
import os
import sys

from pyspark.sql import SparkSession

way = sys.argv[1]
with contextlib.suppress(Exception):
    if way == "connect":
        SparkSession.builder.remote("sc://127.0.0.1").getOrCreate()
    elif way == "variable":
        os.environ["SPARK_REMOTE"] = "sc://127.0.0.1"
        SparkSession.builder.getOrCreate()
    elif way == "dstreams":
        from pyspark.streaming import StreamingContext

        StreamingContext(SparkSession.builder.getOrCreate().sparkContext, 1)
    elif way == "context":
        spark = SparkSession.builder.getOrCreate()
        spark.stop()
        type(spark.sparkContext)()
    else:
        SparkSession.builder.getOrCreate().stop()
        SparkSession.builder.appName("again").getOrCreate()
print("swallowed")
