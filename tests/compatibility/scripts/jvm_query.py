from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
# What a library of the JVM does.
query = rows._jdf.writeStream().format("noop").queryName("of-a-jar").start()
while query.lastProgress() is None:
    spark.streams.awaitAnyTermination(1)
spark.stop()
