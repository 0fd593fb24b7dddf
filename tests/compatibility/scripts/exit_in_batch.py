import os

from pyspark.sql import SparkSession


def write(df, epoch):
    if df.count() and epoch > 0:
        print("enough", flush=True)
        os._exit(0)


spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
rows.writeStream.foreachBatch(write).start().awaitTermination()
