import uuid

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
query = rows.writeStream.format("noop").option("checkpointLocation", f"/tmp/temporary-{uuid.uuid4()}").start()
query.awaitTermination()
