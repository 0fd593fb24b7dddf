import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupStateTimeout

spark = SparkSession.builder.getOrCreate()


def count(key, frames, state):
    total = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
    state.update((total,))
    yield pd.DataFrame({"k": [key[0]], "total": [total]})


rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().selectExpr("value % 3 AS k", "value")
totals = rows.groupBy("k").applyInPandasWithState(count, "k long, total long", "total long", "update", GroupStateTimeout.NoTimeout)
totals.writeStream.outputMode("update").format("console").trigger(processingTime="2 seconds").start().awaitTermination()
