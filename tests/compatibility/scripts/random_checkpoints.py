import uuid

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
for _ in range(2):
    rows.writeStream.format("noop").option("checkpointLocation", f"/tmp/temporary-{uuid.uuid4()}").start()
spark.streams.awaitAnyTermination()
