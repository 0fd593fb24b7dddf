from pyspark import SparkConf
from pyspark.sql import SparkSession

conf = SparkConf().setAll([("spark.sql.session.timeZone", "UTC"), ("spark.sql.shuffle.partitions", "3"), ("spark.sql.ansi.enabled", "false")])
spark = SparkSession.builder.config(conf=conf).config(map={"spark.sql.streaming.numRecentProgressUpdates": 7}).getOrCreate()
print("zone", spark.conf.get("spark.sql.session.timeZone"), "ansi", spark.conf.get("spark.sql.ansi.enabled"), "kept", spark.conf.get("spark.sql.streaming.numRecentProgressUpdates"), flush=True)
spark.readStream.format("rate").load().writeStream.format("noop").start().awaitTermination()
