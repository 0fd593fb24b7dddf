"""Takes part in the control stream, with workers that ask; says in each batch what is in force."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession

from tidegate_spark import control

spark = SparkSession.builder.getOrCreate()
rows = control.controlled(spark.readStream.format("rate").option("rowsPerSecond", 20).load())


def asked(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Say what is in force, once for each part of a batch."""
    for frame in frames:
        now = control.current()
        yield pd.DataFrame({"batch": [now.batch], "n": [now.get("n", -1, int)], "rows": [len(frame)]})


query = rows.mapInPandas(asked, "batch long, n long, rows long")
query.writeStream.format("noop").queryName("main").trigger(processingTime="1 second").start().awaitTermination()
