"""A property of the JVM that is set before there is a context, which starts the JVM."""

from pyspark import SparkContext
from pyspark.sql import SparkSession

SparkContext.setSystemProperty("a.property", "of the script")
spark = SparkSession.builder.getOrCreate()
assert spark.sparkContext._jvm is not None
assert spark.sparkContext._jvm.java.lang.System.getProperty("a.property") == "of the script"
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows.writeStream.format("noop").start().awaitTermination()
