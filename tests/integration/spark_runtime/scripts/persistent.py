"""Has a query that fails inside batch 2, and starts it again each time; says each batch that it is given."""

import sys

from pyspark.sql import DataFrame, SparkSession


def fail(batch: DataFrame, number: int) -> None:
    """Say the batch; fail in the one."""
    sys.stdout.write(f"batch {number} of {batch.count()} rows\n")
    if number == 2:
        raise RuntimeError("this batch always fails")


spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
for _ in range(3):
    try:
        rows.writeStream.queryName("main").foreachBatch(fail).start().awaitTermination()
    except Exception as error:
        print("again, after", type(error).__name__)
raise SystemExit(3)
