"""Says each batch that it is given, with back-to-back triggers."""

from pyspark.sql import DataFrame, SparkSession


def say(batch: DataFrame, number: int) -> None:
    """Say it when its rows are through."""
    print(f"batch {number} of {batch.count()} rows")


spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
rows.writeStream.foreachBatch(say).start().awaitTermination()
