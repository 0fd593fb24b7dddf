import sys
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

source, target = sys.argv[1:]
spark = SparkSession.builder.appName("copy").getOrCreate()


def copy(name):
    rows = spark.readStream.schema("id long, item string").option("maxFilesPerTrigger", 1).json(source)
    query = (
        rows.writeStream.queryName(name)
        .format("parquet")
        .option("checkpointLocation", f"/tmp/checkpoints/{name}")
        .trigger(availableNow=True)
        .start(f"{target}/{name}")
    )
    query.awaitTermination()
    return name


with ThreadPoolExecutor(max_workers=2) as pool:
    for done in pool.map(copy, ["first", "second"]):
        print(done, "rows:", spark.read.parquet(f"{target}/{done}").count(), flush=True)
