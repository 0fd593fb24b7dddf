"""Reads from a bucket that is not the application's storage, and that does not exist."""

from pyspark.sql import SparkSession

SparkSession.builder.getOrCreate().read.text("s3a://bucket-of-the-scripts-own/input").count()
