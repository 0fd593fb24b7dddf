"""One query fails in its Python function while the script waits for the other."""

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


def refuse(batch: DataFrame, number: int) -> None:
    """Fail in the third batch."""
    if number == 2:
        raise ValueError(f"batch {number} is not to my liking")


steady = rows.writeStream.queryName("steady").format("noop").start()
rows.writeStream.queryName("failing").foreachBatch(refuse).start()
steady.awaitTermination()
