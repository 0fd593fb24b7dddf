"""Sets variables as tutorials do before it asks for Spark, none of which fits this pod; then a query runs."""

import json
import os
import sys
from typing import Any

ITS = {
    "JAVA_HOME": "/usr/lib/jvm/java-8-openjdk-amd64",
    "SPARK_HOME": "/content/spark-3.1.1-bin-hadoop3.2",
    "SPARK_CONF_DIR": "/content/conf",
    "PYSPARK_PIN_THREAD": "false",
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_SUBMIT_ARGS": "--master yarn --deploy-mode cluster --driver-memory 900g --packages no.such:jar:1 "
    "--conf spark.sql.caseSensitive=true pyspark-shell",
}
os.environ.update(ITS)

from pyspark.sql import SparkSession  # noqa: E402 - as tutorials have it

spark: Any = SparkSession.builder.getOrCreate()
found = {
    "kept": all(os.environ[name] == value for name, value in ITS.items()),
    "java": spark.sparkContext._jvm.System.getenv("JAVA_HOME") == ITS["JAVA_HOME"],
    "case": spark.conf.get("spark.sql.caseSensitive"),
}
sys.stdout.write(f"found {json.dumps(found)}\n")
sys.stdout.flush()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
counts = rows.groupBy((rows.value % 5).alias("k")).count()
counts.writeStream.outputMode("update").format("noop").start().awaitTermination()
