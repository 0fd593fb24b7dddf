import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
counts = spark.readStream.format("rate").load().selectExpr("value % 3 AS k").groupBy("k").count()
query = counts.writeStream.outputMode("complete").format("memory").queryName("counts").start()
while True:
    spark.sql("select * from counts").show()
    time.sleep(2)
