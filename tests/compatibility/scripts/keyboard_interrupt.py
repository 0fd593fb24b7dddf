from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
query = spark.readStream.format("rate").load().writeStream.format("console").start()
try:
    query.awaitTermination()
except KeyboardInterrupt:
    print("Stopping...")
finally:
    query.stop()
    spark.stop()
