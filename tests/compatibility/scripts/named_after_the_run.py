import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("hourly").getOrCreate()
for run in range(3):
    rows = spark.readStream.text(sys.argv[1])
    query = (
        rows.writeStream.queryName(f"load_{run}")
        .option("checkpointLocation", "/tmp/checkpoints/load")
        .trigger(availableNow=True)
        .format("noop")
        .start()
    )
    query.awaitTermination()
