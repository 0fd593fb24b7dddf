"""Reads files one by one and deletes them, and a queue that is told what was read. Argument: a folder for both."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

place = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()


class Reader(DataSourceStreamReader):
    """Has one row more at each look."""

    def __init__(self, folder: str) -> None:
        """Begin at the beginning."""
        self.folder, self.at = folder, 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where a query begins."""
        return {"at": 0}

    def latestOffset(self, *limits: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where the next batch ends."""
        self.at = max(self.at, *(start["at"] for start in limits[:1]), 0) + 1
        return {"at": self.at}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the one partition."""
        return [InputPartition(end["at"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """Return its row."""
        return iter([(partition.value,)])

    def commit(self, end: dict[str, int]) -> None:
        """Take note of what need not be read again."""
        (Path(self.folder) / "acknowledged").write_text(str(end["at"]))


class Queue(DataSource):
    """A queue."""

    def schema(self) -> str:
        """Return its one column."""
        return "value int"

    def streamReader(self, schema: Any) -> Reader:  # noqa: N802 - Spark's name
        """Return what reads."""
        return Reader(self.options["folder"])


spark.dataSource.register(Queue)
each = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1)
files = each.option("cleanSource", "delete").json(str(place / "in"))
queue = spark.readStream.format("Queue").option("folder", str(place)).load()
for name, read in (("files", files), ("queue", queue)):
    read.writeStream.queryName(name).format("noop").trigger(processingTime="300 milliseconds").start()
print("files that are gone are left out:", spark.conf.get("spark.sql.files.ignoreMissingFiles"))
spark.streams.awaitAnyTermination()
