"""A script that grew up on a laptop: findspark, PYSPARK_SUBMIT_ARGS, SparkConf and SparkContext, Hive support, accumulators of its own type."""

import os
import sys

os.environ["PYSPARK_SUBMIT_ARGS"] = (
    "--master local[*] --driver-memory 2g --conf spark.ui.port=4050 --conf spark.sql.caseSensitive=true pyspark-shell"
)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["TZ"] = "UTC"

try:
    import findspark

    findspark.init()
except (ImportError, ValueError):
    pass

from pyspark import AccumulatorParam, SparkConf, SparkContext, StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql.functions import *
from pyspark.sql.types import *

base = sys.argv[1]
conf = SparkConf().setAppName("Laptop").setMaster("local[*]").setAll([
    ("spark.executor.memory", "512m"),
    ("spark.sql.warehouse.dir", f"{base}/warehouse"),
    ("spark.driver.maxResultSize", "1g"),
    ("spark.driver.extraJavaOptions", f"-Dderby.system.home={base}/derby"),
])
sc = SparkContext.getOrCreate(conf=conf)
sc.setLogLevel("ERROR")
sc.setCheckpointDir(f"{base}/rdd-checkpoints")
spark = SparkSession.builder.config(conf=conf).enableHiveSupport().getOrCreate()
print(sc.uiWebUrl, sc.applicationId, sc.defaultParallelism, spark.version, flush=True)


class Seen(AccumulatorParam):
    def zero(self, value):
        return {}

    def addInPlace(self, one, two):
        for key, n in two.items():
            one[key] = one.get(key, 0) + n
        return one


seen = sc.accumulator({}, Seen())
rejected = sc.accumulator(0)
rates = sc.broadcast({"a": 1.0, "b": 1.1, "c": 0.9})
spark.createDataFrame([("a", "gold"), ("b", "silver")], ["user", "status"]).createOrReplaceGlobalTempView("status")
spark.udf.register("to_euro", lambda user, amount: amount * rates.value.get(user, 1.0), DoubleType())
print([table.name for table in spark.catalog.listTables()], spark.catalog.currentDatabase(), flush=True)

schema = StructType([StructField("id", LongType()), StructField("user", StringType()), StructField("amount", DoubleType())])


def count(row):
    seen.add({row.user: 1})
    if row.amount > 100:
        rejected.add(1)


def each_batch(df, epoch_id):
    df.persist(StorageLevel.MEMORY_AND_DISK)
    df.foreach(count)
    joined = df.join(spark.table("global_temp.status"), "user", "left").withColumn("euro", expr("to_euro(user, amount)"))
    joined.rdd.map(lambda row: (row["status"], row["euro"])).reduceByKey(lambda a, b: a + b).collect()
    joined.write.format("orc").mode("append").save(f"{base}/out")
    print("seen", seen.value, "rejected", rejected.value, flush=True)
    df.unpersist(True)


lines = spark.readStream.option("latestFirst", "true").option("maxFileAge", "7d").text(f"{base}/in")
parsed = lines.withColumn("j", from_json(col("value"), schema)).select("j.*", input_file_name().alias("file"))
writer = parsed.writeStream.foreachBatch(each_batch).option("checkpointLocation", "checkpoint/laptop").trigger(processingTime="1 seconds")
query = writer.start()
query.awaitTermination()
