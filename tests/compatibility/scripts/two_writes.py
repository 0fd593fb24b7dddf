import sys

from pyspark.sql import SparkSession

source, target = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id LONG, item STRING, price DOUBLE").option("maxFilesPerTrigger", 1).json(source)


def write_twice(df, epoch):
    df.persist()
    df.write.mode("overwrite").parquet(f"{target}/all/batch={epoch}")
    df.filter("price > 5").write.mode("overwrite").parquet(f"{target}/dear/batch={epoch}")
    df.unpersist()


orders.writeStream.foreachBatch(write_twice).trigger(availableNow=True).start().awaitTermination()
print("all", spark.read.parquet(f"{target}/all").count(), "dear", spark.read.parquet(f"{target}/dear").count(), flush=True)
