"""One query fails in its Python function while the script waits for the other, whose third batch waits for a file."""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()


def refuse(batch: DataFrame, number: int) -> None:
    """Fail in the third batch."""
    if number == 2:
        raise ValueError(f"batch {number} is not to my liking")


def hold(batch: DataFrame, number: int) -> None:
    """Wait, from the third batch on."""
    while number >= 2 and not Path(sys.argv[1]).exists():
        time.sleep(0.1)


steady = rows.writeStream.queryName("steady").foreachBatch(hold).start()
rows.writeStream.queryName("failing").foreachBatch(refuse).start()
steady.awaitTermination()
