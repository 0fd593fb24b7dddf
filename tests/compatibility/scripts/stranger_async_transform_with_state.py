"""An asyncio main around transformWithState: list, value and map state with a timer, RocksDB, and a heartbeat task."""

import asyncio
import os
from typing import Iterator

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StringType, StructField, StructType

OUTPUT = StructType([StructField("user", StringType()), StructField("n", LongType()), StructField("last", LongType())])


class CountAndLast(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", StructType([StructField("n", LongType())]))
        self.recent = handle.getListState("recent", StructType([StructField("id", LongType())]))

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        n = self.count.get()[0] if self.count.exists() else 0
        ids = [row["id"] for row in rows]
        self.count.update((n + len(ids),))
        self.recent.put([(i,) for i in ids[-3:]])
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 3_600_000)
        yield Row(user=key[0], n=n + len(ids), last=max(ids))

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[Row]:
        self.count.clear()
        return iter([])

    def close(self) -> None:
        pass


async def heartbeat(query):
    while query.isActive:
        print("heartbeat:", query.status["message"], flush=True)
        await asyncio.sleep(2)


async def main():
    spark = (
        SparkSession.builder.appName("tws")
        .config("spark.sql.streaming.stateStore.providerClass",
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    loop = asyncio.get_running_loop()
    stream = spark.readStream.schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").json(os.environ["IN_DIR"])
    query = (
        stream.groupBy("user")
        .transformWithState(CountAndLast(), outputStructType=OUTPUT, outputMode="Update", timeMode="ProcessingTime")
        .writeStream.foreachBatch(lambda df, b: df.write.mode("overwrite").json(f"{os.environ['OUT_DIR']}/{b}"))
        .outputMode("update").option("checkpointLocation", os.environ["CKPT_DIR"])
        .trigger(processingTime="1 second").start()
    )
    await asyncio.gather(heartbeat(query), loop.run_in_executor(None, query.awaitTermination))


asyncio.run(main())
