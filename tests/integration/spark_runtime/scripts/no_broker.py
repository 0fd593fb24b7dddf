"""Reads from a broker whose name nobody knows."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = (
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker.invalid:9092").option("subscribe", "t")
)
rows.load().writeStream.format("noop").start().awaitTermination()
