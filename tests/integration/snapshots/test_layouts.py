"""Real checkpoints of every layout: the files of one batch, and no others, are enough for Spark to go on from it."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate_spark.snapshots.checkpoint.layout import newest_committed
from tidegate_spark.snapshots.checkpoint.operator_files import names_its_place, relocated
from tidegate_testing.streaming_queries import Bench, copy, listing, read_batch

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STATE_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
HDFS = {PROVIDER: f"{STATE_PACKAGE}.HDFSBackedStateStoreProvider"}
ROCKSDB = {PROVIDER: f"{STATE_PACKAGE}.RocksDBStateStoreProvider"}
CHANGELOG = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
FORMAT_2 = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
LAYOUTS: dict[str, dict[str, str]] = {
    "hdfs": HDFS,
    "rocksdb": ROCKSDB,
    "rocksdb-changelog": {**ROCKSDB, **CHANGELOG},
    "format-2": {**ROCKSDB, **FORMAT_2},
    "format-2-changelog": {**ROCKSDB, **FORMAT_2, **CHANGELOG},
}
IN_THE_GATE = ("format-2", "format-2-changelog")
"""What the runtime sets, and the same with changelogs, which has all kinds of files."""
BATCH, LAST = 7, 10
"""Which batch is taken unless it matters, and how far the original goes: beyond it, as one that is running does."""
STATE_FILE = re.compile(r"state/\d+/\d+/([^_].*/)?[^/]+\.(zip|changelog|delta|snapshot|sst|log)")


def layouts(*names: str) -> list[Any]:
    """Return parameters; other layouts than those of the gate are long."""
    return [pytest.param(name, marks=() if name in IN_THE_GATE else pytest.mark.long) for name in names]


def numbers(spark: SparkSession, rows: int = 20) -> DataFrame:
    """The same rows in the same batch, whenever it is run."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2)
    return stream.option("startTimestamp", 0).option("advanceMillisPerBatch", 1000).load()


def counts(spark: SparkSession) -> DataFrame:
    return numbers(spark).groupBy((F.col("value") * 7 % 11).alias("k")).agg(F.count("*"), F.max("value"))


def kinds(checkpoint: Path, batch: int) -> dict[str, str]:
    """Return a file of each kind that the state after ``batch`` is made of."""
    needed = [file.path for file in read_batch(checkpoint, batch).files if STATE_FILE.fullmatch(file.path)]
    return {path.rpartition(".")[2]: path for path in needed}


@pytest.mark.parametrize("layout", layouts(*LAYOUTS))
def test_a_batch_resumes_from_its_files_and_not_without_any_of_them(
    spark: SparkSession, tmp_path: Path, layout: str
) -> None:
    bench = Bench(spark, LAYOUTS[layout], lambda: counts(spark), "update")
    original = tmp_path / "original"
    last, expected = LAST, bench.run(original, LAST, failing={3, 5, 6})
    # When Spark writes snapshots is its own affair: some batches are snapshots alone.
    while not (of_all_kinds := [n for n in range(3, last - 1) if KINDS[layout] == kinds(original, n).keys()]):
        assert last < 10 * LAST, "no batch's state is made of all kinds of files"
        last += 3
        expected |= bench.run(original, last)
    batch = max(of_all_kinds)
    found = read_batch(original, batch)
    files = [file.path for file in found.files]

    resumed = copy(original, files, tmp_path / "copy")
    # All that it needs: whoever looks at these files alone finds the same.
    assert read_batch(resumed, batch) == found
    outputs = bench.run(resumed, last)
    assert min(outputs) == batch + 1
    assert [outputs[n] for n in range(batch + 1, last + 1)] == [expected[n] for n in range(batch + 1, last + 1)]
    assert bench.state(resumed, batch) == bench.state(original, batch) != []

    for lost in [*kinds(original, batch).values(), f"offsets/{batch - 1}"]:
        damaged = copy(original, set(files) - {lost}, tmp_path / f"without-{lost.replace('/', '-')}")
        with pytest.raises(StreamingQueryException):
            bench.run(damaged, batch + 1)
    # Spark 4.2 writes checksums in format 2, and those are taken along.
    assert any(path.endswith(".crc") for path in files) is layout.startswith("format-2")
    facts = found.facts
    assert (facts["provider"], facts["formatVersion"], facts["changelog"]) == FACTS[layout]
    assert facts["operators"] == [{"id": 0, "name": "stateStoreSave", "stores": ["default"], "partitions": 2}]


KINDS = {
    "hdfs": {"snapshot", "delta"},
    "rocksdb": {"zip", "sst"},
    "rocksdb-changelog": {"zip", "sst", "changelog"},
    "format-2": {"zip", "sst"},
    "format-2-changelog": {"zip", "sst", "changelog"},
}
FACTS = {
    "hdfs": ("HDFS", 1, False),
    "rocksdb": ("RocksDB", 1, False),
    "rocksdb-changelog": ("RocksDB", 1, True),
    "format-2": ("RocksDB", 2, False),
    "format-2-changelog": ("RocksDB", 2, True),
}


@pytest.mark.parametrize("codec", ["lz4", pytest.param("zstd", marks=pytest.mark.long)])
def test_changelogs_of_attempts_that_did_not_count_are_left_out(
    spark: SparkSession, tmp_path: Path, codec: str
) -> None:
    settings = {"spark.sql.streaming.stateStore.compression.codec": codec, **LAYOUTS["format-2-changelog"]}
    settings["spark.sql.streaming.stateStore.minDeltasForSnapshot"] = "100"
    bench = Bench(spark, settings, lambda: counts(spark), "update")
    bench.run(tmp_path / "q", 5, failing={4, 5})
    in_all = [path for path in listing(tmp_path / "q") if re.fullmatch(r"state/0/0/[56]_.*\.changelog", path)]
    needed = [file.path for file in read_batch(tmp_path / "q", 5).files if file.path in in_all]
    assert len(in_all) == 4
    assert [path.partition("_")[0] for path in needed] == ["state/0/0/5", "state/0/0/6"]


@pytest.mark.parametrize("layout", layouts(*LAYOUTS))
def test_the_first_batch_resumes_and_so_does_the_second(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    bench = Bench(spark, LAYOUTS[layout], lambda: counts(spark), "update")
    expected = bench.run(tmp_path / "q", 2)
    for batch in (0, 1):
        files = [file.path for file in read_batch(tmp_path / "q", batch).files]
        outputs = bench.run(copy(tmp_path / "q", files, tmp_path / f"copy-{batch}"), 2)
        assert outputs[batch + 1] == expected[batch + 1]
        assert outputs[2] == expected[2]


@pytest.mark.long
@pytest.mark.parametrize("layout", layouts("hdfs", "format-2-changelog"))
def test_a_join_of_two_sources_has_four_stores(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    def joined() -> DataFrame:
        left = numbers(spark, 10).select((F.col("value") % 50).alias("k"), F.col("value").alias("l"))
        right = numbers(spark, 6).select((F.col("value") % 50).alias("k"), F.col("value").alias("r"))
        return left.join(right, "k")

    bench = Bench(spark, LAYOUTS[layout], joined, "append")
    original = tmp_path / "original"
    expected = bench.run(original, LAST, failing={BATCH})
    found = read_batch(original, BATCH)
    assert len(found.state.operators[0].stores) == 4
    resumed = copy(original, [file.path for file in found.files], tmp_path / "copy")
    outputs = bench.run(resumed, LAST)
    assert [outputs[batch] for batch in range(BATCH + 1, LAST + 1)] == [
        expected[batch] for batch in range(BATCH + 1, LAST + 1)
    ]
    for side in ("left", "right"):
        assert bench.state(resumed, BATCH, joinSide=side) == bench.state(original, BATCH, joinSide=side) != []


@pytest.mark.parametrize("layout", layouts("rocksdb", "format-2"))
def test_an_aggregation_without_keys_has_one_partition_of_two(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    def total() -> DataFrame:
        return numbers(spark).dropDuplicates(["value"]).agg(F.sum("value"))

    bench = Bench(spark, LAYOUTS[layout], total, "update")
    expected = bench.run(tmp_path / "q", 4)
    found = read_batch(tmp_path / "q", 2)
    assert sorted((each.name, each.partitions) for each in found.state.operators) == [
        ("dedupe", 2),
        ("stateStoreSave", 1),
    ]
    outputs = bench.run(copy(tmp_path / "q", [file.path for file in found.files], tmp_path / "copy"), 4)
    assert [outputs[3], outputs[4]] == [expected[3], expected[4]]


def sums_of(stream: DataFrame) -> DataFrame:
    """A transformWithState that adds up values by key and remembers the last ones."""

    class Sums(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._sum = handle.getValueState("sum", "total bigint")
            self._seen = handle.getListState("seen", "value bigint")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
            before = self._sum.get()
            total = before[0] if before is not None else 0
            for row in rows:
                total += row.value
                self._seen.appendValue((row.value,))
            self._sum.update((total,))
            yield Row(k=key[0], total=total)

        def close(self) -> None:
            pass

    keyed = stream.select((F.col("value") % 5).alias("k"), "value").groupBy("k")
    return keyed.transformWithState(Sums(), "k bigint, total bigint", "Update", "None")


@pytest.mark.long
def test_operator_metadata_keeps_a_copy_bound_to_its_original_until_it_is_relocated(
    spark: SparkSession, tmp_path: Path
) -> None:
    bench = Bench(spark, LAYOUTS["format-2-changelog"], lambda: sums_of(numbers(spark)), "update")
    original = tmp_path / "original"
    expected = bench.run(original, 3)
    expected |= bench.run(original, 5)
    found = read_batch(original, 3)
    files = [file.path for file in found.files]
    places = [path for path in files if names_its_place(path)]
    assert places == ["state/0/_metadata/v2/0"]
    state = bench.state(original, 3, stateVarName="sum")
    bound, free = (copy(original, files, tmp_path / name) for name in ("bound", "free"))
    for path in places:
        (free / path).write_bytes(relocated(path, (free / path).read_bytes(), f"file:{free}"))
    original.rename(tmp_path / "gone")

    with pytest.raises(StreamingQueryException):
        bench.run(bound, 4)
    outputs = bench.run(free, 5)
    assert [outputs[4], outputs[5]] == [expected[4], expected[5]]
    assert bench.state(free, 3, stateVarName="sum") == state != []


def files_read(spark: SparkSession, folder: Path) -> Callable[[], DataFrame]:
    """One file in each batch; Spark is set to make every third entry of the source's log a compact one."""

    def read() -> DataFrame:
        stream = spark.readStream.schema("value bigint").option("maxFilesPerTrigger", 1)
        return stream.option("maxCachedFiles", 0).json(str(folder))

    return read


@pytest.mark.parametrize("batch", [pytest.param(4, marks=pytest.mark.long), 5, 6])
def test_a_file_source_goes_on_with_the_next_file(spark: SparkSession, tmp_path: Path, batch: int) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    bench = Bench(spark, LAYOUTS["format-2"], files_read(spark, folder), "append")
    original = tmp_path / "original"
    for number in range(10):
        (folder / f"{number}.json").write_text(f'{{"value":{number}}}')
        # The source takes the oldest first, by seconds.
        os.utime(folder / f"{number}.json", (1_700_000_000 + number, 1_700_000_000 + number))
    expected = bench.run(original, 9)
    assert expected == {number: [(number,)] for number in range(10)}
    found = read_batch(original, batch)
    assert found.stateless
    assert found.format_version == 2
    assert newest_committed(listing(original)) == 9
    log = {file.path.removeprefix("sources/0/") for file in found.files if file.path.startswith("sources/")}
    assert log == {4: {"2.compact", "3", "4"}, 5: {"2.compact", "5.compact"}, 6: {"2.compact", "5.compact", "6"}}[batch]
    outputs = bench.run(copy(original, [file.path for file in found.files], tmp_path / "copy"), 9)
    assert outputs == {number: [(number,)] for number in range(batch + 1, 10)}
