"""Reads inputs from three places by the usual recipes, prints them, and then a query runs.

Arguments: a bucket in the application's own store; the endpoint, access key and secret key of another store, which has
buckets ``named`` and ``common``. The first of these is reached by settings of that bucket, the other by those for all.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

near, endpoint, access, secret = sys.argv[1:]
spark: Any = (
    SparkSession.builder.config("spark.hadoop.fs.s3a.bucket.named.endpoint", endpoint)
    .config("spark.hadoop.fs.s3a.bucket.named.access.key", access)
    .config("spark.hadoop.fs.s3a.bucket.named.secret.key", secret)
    .getOrCreate()
)


def read(bucket: str) -> str:
    lines: list[str] = [row.value for row in spark.read.text(f"s3a://{bucket}/inputs/").collect()]
    return lines[0]


found: dict[str, Any] = {"near": read(near), "named": read("named")}
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
hadoop.set("fs.s3a.endpoint", endpoint)
hadoop.set("fs.s3a.access.key", access)
hadoop.set("fs.s3a.secret.key", secret)
found["common"] = read("common")
sys.stdout.write(f"found {json.dumps(found)}\n")
sys.stdout.flush()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
counts = rows.groupBy((rows.value % 5).alias("k")).count()
counts.writeStream.outputMode("update").format("noop").start().awaitTermination()
