"""Spark's page about data sources in Python: a stream reader, a stream writer with commit and abort, and a UDTF in SQL."""

import json
import os
import sys
from dataclasses import dataclass
from typing import Iterator

from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.functions import lit, udtf


class Range(InputPartition):
    def __init__(self, start, end):
        self.start, self.end = start, end


class FakeStreamReader(DataSourceStreamReader):
    def __init__(self, schema, options):
        self.current = 0
        self.step = int(options.get("step", 2))

    def initialOffset(self):
        return {"offset": 0}

    def latestOffset(self):
        self.current += self.step
        return {"offset": self.current}

    def partitions(self, start, end):
        return [Range(n, n + 1) for n in range(start["offset"], end["offset"])]

    def commit(self, end):
        pass

    def read(self, partition) -> Iterator[tuple]:
        for n in range(partition.start, partition.end):
            yield (n, f"name-{n % 5}", "a b c")


@dataclass
class SimpleCommitMessage(WriterCommitMessage):
    partition_id: int
    count: int


class FakeStreamWriter(DataSourceStreamWriter):
    def __init__(self, options):
        self.path = options["path"]

    def write(self, iterator) -> WriterCommitMessage:
        from pyspark import TaskContext

        count = 0
        for row in iterator:
            assert isinstance(row, Row)
            count += 1
        return SimpleCommitMessage(TaskContext.get().partitionId(), count)

    def commit(self, messages, batchId):
        os.makedirs(self.path, exist_ok=True)
        with open(os.path.join(self.path, f"{batchId}.json"), "w") as file:
            file.write(json.dumps({"rows": sum(m.count for m in messages if m)}))
        print(f"committed {batchId}", flush=True)

    def abort(self, messages, batchId):
        print(f"aborted {batchId}", flush=True)


class FakeDataSource(DataSource):
    """options: path, step"""

    @classmethod
    def name(cls):
        return "fake"

    def schema(self):
        return "id INT, name STRING, words STRING"

    def streamReader(self, schema):
        return FakeStreamReader(schema, self.options)

    def streamWriter(self, schema, overwrite):
        return FakeStreamWriter(self.options)


@udtf(returnType="word STRING, position INT")
class Words:
    def eval(self, text: str):
        for position, word in enumerate(text.split()):
            yield word, position


spark = SparkSession.builder.appName("python-data-source").getOrCreate()
spark.dataSource.register(FakeDataSource)
spark.udtf.register("words", Words)
people = spark.readStream.format("fake").option("step", 3).load()
people.createOrReplaceTempView("people")
words = spark.sql("SELECT id, name, w.word FROM people, LATERAL words(words) AS w WHERE w.position < 2")
query = (
    words.withColumn("kind", lit("word"))
    .writeStream.format("fake")
    .option("checkpointLocation", sys.argv[2])
    .trigger(processingTime="1 second")
    .start(sys.argv[1])
)
query.awaitTermination()
