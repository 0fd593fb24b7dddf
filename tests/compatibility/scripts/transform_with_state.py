from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor


class Totals(StatefulProcessor):
    def init(self, handle):
        self.total = handle.getValueState("total", "n LONG")

    def handleInputRows(self, key, rows, timerValues):
        n = (self.total.get()[0] if self.total.exists() else 0) + sum(1 for _ in rows)
        self.total.update((n,))
        yield Row(k=key[0], n=n)

    def close(self):
        pass


spark = SparkSession.builder.getOrCreate()
spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().selectExpr("value % 3 AS k")
totals = rows.groupBy("k").transformWithState(Totals(), "k LONG, n LONG", "Update", "None")
totals.writeStream.outputMode("update").format("console").trigger(processingTime="2 seconds").start().awaitTermination()
