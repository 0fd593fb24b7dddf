"""Asks for Spark again: with the same settings, with none, and with such as come too late; then a query runs."""

from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

FIRST: Any = {
    "spark.files": __file__,
    "spark.sql.extensions": "org.example.Nope",
    "spark.sql.warehouse.dir": "file:///here",
}
LATE: Any = {
    "spark.hadoop.fs.s3a.threads.max": "3",
    "spark.sql.warehouse.dir": "file:///elsewhere",
    "spark.sql.session.timeZone": "Asia/Tokyo",
}
spark = SparkSession.builder.config(map=FIRST).getOrCreate()
NONE: Any = {}
for again in (FIRST, NONE, LATE):
    assert SparkSession.builder.config(map=again).getOrCreate() is spark
SparkContext.getOrCreate(SparkConf())
SparkContext.getOrCreate(SparkConf().set("spark.executor.extraJavaOptions", "-Dlate"))
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows.writeStream.format("noop").start().awaitTermination()
