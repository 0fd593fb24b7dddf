from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("Forgetful").getOrCreate()
df = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
df.writeStream.format("console").outputMode("append").start()
