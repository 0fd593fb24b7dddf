import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("nightly").getOrCreate()
orders = spark.read.schema("id long, item string, price double").json(sys.argv[1])
print("orders:", orders.count(), flush=True)
totals = orders.groupBy("item").agg(F.sum("price").alias("total"))
totals.write.mode("overwrite").parquet(sys.argv[2])
print("items:", spark.read.parquet(sys.argv[2]).count(), flush=True)
spark.stop()
