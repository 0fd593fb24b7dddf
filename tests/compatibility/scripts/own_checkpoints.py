from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
for table in ("orders", "refunds"):
    (
        rows.writeStream.format("noop")
        .option("checkpointLocation", f"s3a://data-lake/checkpoints/{table}")
        .trigger(processingTime="1 second")
        .start()
    )
spark.streams.awaitAnyTermination()
