import time

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader


class Ticks(SimpleDataSourceStreamReader):
    def initialOffset(self):
        return {"tick": 0}

    def read(self, start):
        tick = start["tick"]
        return iter([(tick, time.time())]), {"tick": tick + 1}

    def readBetweenOffsets(self, start, end):
        return iter([(tick, 0.0) for tick in range(start["tick"], end["tick"])])

    def commit(self, end):
        pass


class TickSource(DataSource):
    @classmethod
    def name(cls):
        return "ticks"

    def schema(self):
        return "tick int, at double"

    def simpleStreamReader(self, schema):
        return Ticks()


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(TickSource)
spark.readStream.format("ticks").load().writeStream.format("console").trigger(processingTime="1 second").start().awaitTermination()
