from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

conf = SparkConf().setAppName("ContextFirst").set("spark.sql.shuffle.partitions", "4").set("spark.ui.showConsoleProgress", "false")
sc = SparkContext(conf=conf)
sc.setLogLevel("WARN")
limits = sc.broadcast({"a": 1, "b": 2})
spark = SparkSession(sc)
df = spark.readStream.format("rate").option("rowsPerSecond", 10).load()


def show(batch, batch_id):
    print("batch", batch_id, batch.rdd.map(lambda row: row.value + limits.value["b"]).sum(), flush=True)


df.writeStream.foreachBatch(show).start().awaitTermination()
