import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
items = spark.createDataFrame([("a", "apple"), ("b", "bread"), ("c", "cider")], "item string, label string")
orders = spark.readStream.schema("id long, item string, price double").option("maxFilesPerTrigger", 1).json(sys.argv[1])
totals = orders.join(F.broadcast(items), "item", "left").groupBy("label").agg(F.count("*").alias("n"))
totals.writeStream.outputMode("complete").foreachBatch(
    lambda df, n: df.write.mode("overwrite").json(sys.argv[2])
).trigger(availableNow=True).start().awaitTermination()
print("counted", spark.read.json(sys.argv[2]).agg(F.sum("n")).first()[0], flush=True)
