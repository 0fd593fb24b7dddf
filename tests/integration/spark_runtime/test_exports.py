"""State of real queries as plain files, and new queries that start with it; Spark of this process, Kafka of the test's.

The object store is in memory: nothing here is about one.
"""

import datetime
import json
import math
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate_spark import exported_state, initial_state
from tidegate_spark.contract.snapshot_protocol import EXPORT_FORMATS, StateChoice
from tidegate_spark.exports import formats, parquet_footer
from tidegate_spark.exports.errors import (
    ExportError,
    ExportExistsError,
    StateNotFoundError,
    StateUnreadableError,
    UnsuitableFormatError,
)
from tidegate_spark.snapshots.manifest import DamagedError
from tidegate_testing.exports import SnapshotOf
from tidegate_testing.streaming_queries import Bench

STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
HDFS = {PROVIDER: f"{STATE}.HDFSBackedStateStoreProvider"}
ROCKSDB = {PROVIDER: f"{STATE}.RocksDBStateStoreProvider"}
OURS = {**ROCKSDB, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
CHANGELOG = {**OURS, "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
BATCH, ROWS = 3, 20
AN_HOUR_MS = 3_600_000


class Shopper(StatefulProcessor):
    """Keeps a value, a list, a map, a value that ages, and a timer for each shopper."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.total: Any = handle.getValueState("total", "n BIGINT, last STRING")
        self.recent = handle.getListState("recent", "x BIGINT")
        self.by_kind: Any = handle.getMapState("by kind", "kind STRING", "n BIGINT")
        self.seen = handle.getValueState("seen", "n BIGINT", ttlDurationMs=AN_HOUR_MS)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        n = self.total.get()[0] if self.total.exists() else 0
        for row in rows:
            n += 1
            self.recent.appendValue((row.value,))
            kind = (f"kind {row.value % 3}",)
            before = self.by_kind.getValue(kind)[0] if self.by_kind.containsKey(kind) else 0
            self.by_kind.updateValue(kind, (before + 1,))
        self.total.update((n, "x" * n))
        self.seen.update((n,))
        if not list(self.handle.listTimers()):
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 100 * AN_HOUR_MS)
        yield from ()

    def close(self) -> None:
        pass


def numbers(spark: SparkSession) -> DataFrame:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2)
    return stream.option("startTimestamp", 0).option("advanceMillisPerBatch", 1000).load()


def shoppers(spark: SparkSession) -> DataFrame:
    keyed = numbers(spark).withColumn("id", F.concat(F.lit("shopper "), F.col("value") % 5)).groupBy("id")
    return keyed.transformWithState(Shopper(), "id STRING", "update", "ProcessingTime")


def sums(spark: SparkSession) -> DataFrame:
    # Spark calls two of its fields `count`.
    return numbers(spark).groupBy((F.col("value") * 7 % 11).alias("k")).agg(F.count("*"), F.avg("value"))


def distinct(spark: SparkSession) -> DataFrame:
    return numbers(spark).dropDuplicates(["value"])


def pairs(spark: SparkSession) -> DataFrame:
    left = numbers(spark).select(F.col("value").alias("a"), F.col("timestamp").alias("ta"), F.lit(-0.0).alias("f"))
    right = numbers(spark).select((F.col("value") * 2).alias("b"), F.col("timestamp").alias("tb"))
    left, right = left.withWatermark("ta", "1000 seconds"), right.withWatermark("tb", "1000 seconds")
    return left.join(right, F.expr("a = b AND tb >= ta - interval 10 seconds"))


QUERIES: dict[str, tuple[Callable[[SparkSession], DataFrame], str, dict[str, str]]] = {
    "shoppers": (shoppers, "update", CHANGELOG),
    "sums": (sums, "update", HDFS),
    "distinct": (distinct, "append", OURS),
    "pairs": (pairs, "append", ROCKSDB),
}


@pytest.fixture(scope="module")
def checkpoints(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("checkpoints")
    for name, (query, mode, settings) in QUERIES.items():
        Bench(spark, settings, partial(query, spark), mode).run(root / name, BATCH)
    return {name: root / name for name in QUERIES}


@pytest.fixture(scope="module")
def snapshot(checkpoints: dict[str, Path]) -> SnapshotOf:
    return SnapshotOf(checkpoints)


@pytest.fixture(scope="module")
def exported(spark: SparkSession, snapshot: SnapshotOf, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The snapshot in each format: the addresses of the manifests."""
    root, found = tmp_path_factory.mktemp("exports"), {}
    for form in EXPORT_FORMATS:
        snapshot.export(spark, root / "work", f"first-{form}", form)
        found[form] = snapshot.put_down(f"first-{form}", root / form)
    return found


def reading(spark: SparkSession, checkpoint: Path, settings: dict[str, str], **options: str) -> DataFrame:
    """What Spark's own reader reads of the original."""
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    return session.read.format("statestore").options(batchId=str(BATCH), **options).load(str(checkpoint))


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_two_exports_of_one_snapshot_have_equal_bytes(
    spark: SparkSession, snapshot: SnapshotOf, exported: dict[str, str], tmp_path: Path, form: str
) -> None:
    del exported
    snapshot.export(spark, tmp_path / "elsewhere", f"second-{form}", form)
    first, second = snapshot.files(f"first-{form}"), snapshot.files(f"second-{form}")
    assert first == second
    tables = {name.rpartition(".")[0] for name in first} - {"manifest"}
    assert tables == {
        "shoppers/0-total",
        "shoppers/0-recent",
        "shoppers/0-by~20kind",
        "shoppers/0-seen",
        "shoppers/0-~24timers",
        "sums/0-default",
        "distinct/0-default",
        "pairs/0-left",
        "pairs/0-right",
    }


def test_the_order_in_which_a_jvm_happens_to_list_encodings_makes_no_difference(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(7).selectExpr("id", "array(id) AS many").coalesce(1).write.parquet(str(tmp_path / "some"))
    (one,) = (tmp_path / "some").glob("part-*")
    other = tmp_path / "other" / one.name
    other.parent.mkdir()
    shutil.copy(one, other)
    jvm: Any = spark._jvm
    backwards = SimpleNamespace(Collections=SimpleNamespace(sort=jvm.java.util.Collections.reverse))
    parquet_footer.settle(SimpleNamespace(org=jvm.org, java=SimpleNamespace(util=backwards, io=jvm.java.io)), other)
    assert one.read_bytes() != other.read_bytes()
    for file in (one, other):
        parquet_footer.settle(jvm, file)
    assert one.read_bytes() == other.read_bytes()
    rows = spark.read.parquet(str(other)).collect()
    assert sorted((row.id, row.many) for row in rows) == [(n, [n]) for n in range(7)]


def test_an_export_that_was_interrupted_is_made_again_and_another_one_keeps_off(
    spark: SparkSession, snapshot: SnapshotOf, exported: dict[str, str], tmp_path: Path
) -> None:
    del exported
    before = snapshot.files("first-CSV")
    snapshot.store.delete([snapshot.repository.key("exports", "first-CSV", "manifest.json")])
    snapshot.export(spark, tmp_path, "first-CSV", "CSV")
    assert snapshot.files("first-CSV") == before
    with pytest.raises(ExportExistsError, match=r"spec\.export\.nonce"):
        snapshot.export(spark, tmp_path, "first-CSV", "JSONLines", StateChoice("distinct"))


def test_every_format_gives_back_what_the_state_reader_read(
    spark: SparkSession, checkpoints: dict[str, Path], exported: dict[str, str]
) -> None:
    live = reading(spark, checkpoints["sums"], HDFS)
    expected = sorted(((row.key[0], *row.value) for row in live.collect()), key=str)
    assert len(expected) == 11
    for form, uri in exported.items():
        found = exported_state(spark, query="sums", export=uri)
        assert found.columns == ["key", "value"], form
        assert found.select("value.*").columns == ["count", "sum", "count_2"], form
        assert sorted(((row.key[0], *row.value) for row in found.collect()), key=str) == expected, form


def test_rows_are_in_the_order_of_their_keys(exported: dict[str, str]) -> None:
    lines = Path(exported["JSONLines"].removeprefix("file://")).parent.joinpath("distinct/0-default.jsonl").read_text()
    found = [json.loads(line)["key"]["value"] for line in lines.splitlines()]
    assert found == sorted(found)
    assert len(set(found)) == (BATCH + 1) * ROWS


@pytest.mark.parametrize("side", ["left", "right"])
def test_each_side_of_a_join_is_what_the_state_reader_reads(
    spark: SparkSession, checkpoints: dict[str, Path], exported: dict[str, str], side: str
) -> None:
    live = reading(spark, checkpoints["pairs"], ROCKSDB, joinSide=side)
    expected = sorted(map(str, live.select("key", "value").collect()))
    assert len(expected) > ROWS
    for form, uri in exported.items():
        assert sorted(map(str, exported_state(spark, side, query="pairs", export=uri).collect())) == expected, form


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_initial_state_is_one_row_for_each_key(spark: SparkSession, exported: dict[str, str], form: str) -> None:
    rows = initial_state(spark, query="shoppers", export=exported[form])
    assert rows.columns == ["id", "$timers", "by kind", "recent", "seen", "total"]
    found = {row.id: row for row in rows.collect()}
    assert sorted(found) == [f"shopper {n}" for n in range(5)]
    one = found["shopper 1"]
    values = range(1, (BATCH + 1) * ROWS, 5)
    assert one.total == Row(n=len(values), last="x" * len(values))
    assert sorted(each.x for each in one.recent) == list(values)
    kinds = {pair.key.kind: pair.value.n for pair in one["by kind"]}
    assert kinds == {f"kind {k}": sum(1 for v in values if v % 3 == k) for k in range(3)}
    assert one.seen == Row(n=len(values))
    assert len(one["$timers"]) == 1


def test_the_order_of_a_list_is_kept(spark: SparkSession, exported: dict[str, str]) -> None:
    orders = [
        {
            row.id: [each.x for each in row.recent]
            for row in initial_state(spark, query="shoppers", export=uri).collect()
        }
        for uri in exported.values()
    ]
    assert orders[0] == orders[1] == orders[2]
    # Batches one after the other, whatever the order in a batch.
    assert all(sorted(of, key=lambda x: x // ROWS) == of for of in orders[0].values())


class NewShopper(StatefulProcessor):
    """Another version: none of its variables has the type, or the kind, that it had."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total: Any = handle.getValueState("total", "n STRING")
        self.recent = handle.getListState("recent", "x DOUBLE, note STRING")
        self.by_kind: Any = handle.getMapState("by kind", "kind BIGINT", "n STRING")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        self.total.update((str(initialState["total"]["n"]),))
        self.recent.put([(each["x"] / 2, "old") for each in initialState["recent"]])
        for pair in initialState["by kind"]:
            self.by_kind.updateValue((int(pair["key"]["kind"][-1]),), (str(pair["value"]["n"]),))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        n = int(self.total.get()[0]) if self.total.exists() else 0
        for row in rows:
            n += 1
            self.recent.appendValue((row.value / 2, "new"))
            kind = (row.value % 3,)
            before = int(self.by_kind.getValue(kind)[0]) if self.by_kind.containsKey(kind) else 0
            self.by_kind.updateValue(kind, (str(before + 1),))
        self.total.update((str(n),))
        kinds = {pair[0][0]: pair[1][0] for pair in self.by_kind.iterator()}
        notes = [each[1] for each in self.recent.get()]
        halves = sum(each[0] for each in self.recent.get())
        yield Row(id=key[0], n=n, kinds=json.dumps(kinds, sort_keys=True), old=notes.count("old"), halves=halves)

    def close(self) -> None:
        pass


def test_a_new_version_starts_from_value_list_and_map_through_an_incompatible_change(
    spark: SparkSession, exported: dict[str, str], tmp_path: Path
) -> None:
    """Its input is that of the old one once more, so that every sum is known."""

    def query() -> DataFrame:
        begun = initial_state(spark, query="shoppers", export=exported["Parquet"]).drop("$timers", "seen").groupBy("id")
        keyed = numbers(spark).withColumn("id", F.concat(F.lit("shopper "), F.col("value") % 5)).groupBy("id")
        schema = "id STRING, n BIGINT, kinds STRING, old BIGINT, halves DOUBLE"
        return keyed.transformWithState(NewShopper(), schema, "update", "None", begun)

    outputs = Bench(spark, CHANGELOG, query, "update").run(tmp_path / "new", BATCH)
    values = range(1, (BATCH + 1) * ROWS, 5)
    kinds = {str(k): str(2 * sum(1 for v in values if v % 3 == k)) for k in range(3)}
    last = {row[0]: row for row in outputs[BATCH]}
    assert last["shopper 1"] == (
        "shopper 1",
        2 * len(values),
        json.dumps(kinds, sort_keys=True),
        len(values),
        float(sum(values)),
    )
    # Once: a start of the same query again does not begin again.
    again = Bench(spark, CHANGELOG, query, "update").run(tmp_path / "new", BATCH + 1)
    assert {row[0]: row[1] for row in again[BATCH + 1]}["shopper 1"] == 2 * len(values) + ROWS // 5


class PandasShopper(NewShopper):
    """The same for transformWithStateInPandas."""

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        (row,) = initialState.to_dict("records")
        super().handleInitialState(key, {**row, "by kind": row["by_kind"]}, timerValues)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        batch = [Row(value=int(value)) for frame in rows for value in frame["value"]]
        yield pd.DataFrame([row.asDict() for row in super().handleInputRows(key, iter(batch), timerValues)])


@pytest.mark.long
def test_so_does_one_of_pandas(spark: SparkSession, exported: dict[str, str], tmp_path: Path) -> None:
    def query() -> DataFrame:
        begun = initial_state(spark, query="shoppers", export=exported["CSV"]).drop("$timers", "seen")
        # Spark calls columns by their number whose names are none in Python.
        grouped = begun.withColumnRenamed("by kind", "by_kind").groupBy("id")
        keyed = numbers(spark).withColumn("id", F.concat(F.lit("shopper "), F.col("value") % 5)).groupBy("id")
        schema = "id STRING, n BIGINT, kinds STRING, old BIGINT, halves DOUBLE"
        return keyed.transformWithStateInPandas(PandasShopper(), schema, "update", "None", grouped)

    outputs = Bench(spark, CHANGELOG, query, "update").run(tmp_path / "new", 1)
    values = range(1, (BATCH + 1) * ROWS, 5)
    last = {row[0]: row[1:] for row in outputs[1]}["shopper 1"]
    new = [value for value in values if value < 2 * ROWS]
    assert (last[0], last[2], last[3]) == (len(values) + len(new), len(values), (sum(values) + sum(new)) / 2)


def test_what_had_outlived_its_time_is_left_out(spark: SparkSession, exported: dict[str, str], tmp_path: Path) -> None:
    source = Path(exported["JSONLines"].removeprefix("file://")).parent
    for path in source.rglob("*.json*"):
        target = tmp_path / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    later = json.loads((tmp_path / "manifest.json").read_text())
    later["queries"]["shoppers"]["timestamp_ms"] += 2 * AN_HOUR_MS
    (tmp_path / "manifest.json").write_text(json.dumps(later))
    rows = initial_state(spark, query="shoppers", export=f"file://{tmp_path}").collect()
    assert len(rows) == 5
    assert {row.seen for row in rows} == {None}
    assert None not in {row.total for row in rows}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": "sums"}, r"stateStoreSave.*spec\.startFrom\.snapshot.*exported_state"),
        ({"query": "pairs"}, r"symmetricHashJoin.*exported_state"),
        ({"query": "distinct", "operator": 0}, r"dedupe.*exported_state"),
        ({}, r"4 queries.*query=…"),
        ({"query": "nobody"}, r"no query 'nobody'.*distinct, pairs, shoppers, sums"),
    ],
)
def test_what_can_not_be_started_from_is_named_and_refused(
    spark: SparkSession, exported: dict[str, str], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ExportError, match=message):
        initial_state(spark, export=exported["Parquet"], **arguments)


def test_an_export_that_is_not_there_is_named_with_the_field(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ExportError, match=r"nowhere/manifest\.json \(spec\.startFrom\.exportedState, or export=…\)"):
        initial_state(spark, export=f"file://{tmp_path}/nowhere")
    monkeypatch.delenv("TIDEGATE_EXPORT", raising=False)
    with pytest.raises(ExportError, match=r"set spec\.startFrom\.exportedState"):
        initial_state(spark)


def test_state_that_is_not_there_is_named_with_what_is(
    spark: SparkSession, snapshot: SnapshotOf, tmp_path: Path
) -> None:
    with pytest.raises(StateNotFoundError, match=r"spec\.export\.states\[1\].*distinct/0/default.*shoppers/0/total"):
        snapshot.export(spark, tmp_path, "none", "CSV", StateChoice("sums"), StateChoice("shoppers", 0, "nothing"))
    assert snapshot.files("none") == {}


def test_one_table_alone_is_exported(spark: SparkSession, snapshot: SnapshotOf, tmp_path: Path) -> None:
    made = snapshot.export(spark, tmp_path, "one", "JSONLines", StateChoice("shoppers", name="total"))
    assert sorted(snapshot.files("one")) == ["manifest.json", "shoppers/0-total.jsonl"]
    assert (made.manifest.rows, len(made.manifest.queries)) == (5, 4)


def test_state_that_spark_can_not_read_is_said_in_its_words(
    spark: SparkSession, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(checkpoints["distinct"], damaged, ignore=shutil.ignore_patterns(".*.crc", "*.crc"))
    for path in damaged.rglob("*.sst"):
        path.write_bytes(b"x" * path.stat().st_size)
    broken = SnapshotOf({"distinct": damaged})
    with pytest.raises(StateUnreadableError, match=r"^Spark cannot read the state: .*orrupt"):
        broken.export(spark, tmp_path / "work", "broken", "CSV")
    assert broken.files("broken") == {}


def test_a_snapshot_that_is_not_whole_is_not_exported(
    spark: SparkSession, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    damaged = SnapshotOf({"sums": checkpoints["sums"]})
    damaged.store.delete([damaged.repository.key(damaged.manifest.files[0].key)])
    with pytest.raises(DamagedError, match="is not whole"):
        damaged.export(spark, tmp_path, "damaged", "CSV")


AWKWARD = (
    "key struct<k: string, b: binary>, value struct<d: double, n: decimal(20,3), t: timestamp, day: date, "
    "l: array<struct<x: int, s: string>>, m: map<string, double>, big: bigint>"
)
AT = datetime.datetime(2024, 2, 29, 12, 30, 59, 123456)
AWKWARD_ROWS: list[tuple[Any, Any]] = [
    ((None, None), (None, None, None, None, None, None, None)),
    (("", b""), (0.0, Decimal("0.001"), AT, datetime.date(1969, 12, 31), [], {}, -(2**63))),
    (("\\N", b"\x00\xff"), (-0.0, Decimal("-99999999999999999.999"), AT, None, [None], {"": 1.0}, 2**63 - 1)),
    (('a "b", c\r\nd\\ \t', b"b"), (math.inf, None, AT, None, [(1, None), (None, ' "x"\n')], {"k,": math.nan}, 0)),
    (("  padded ", b"c"), (-math.inf, None, None, None, None, None, 1)),
    (("ü\u2028ß", b"d"), (1e-300, None, None, None, None, {"a": None}, 1)),
]


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_awkward_values_come_back_as_they_were(spark: SparkSession, tmp_path: Path, form: str) -> None:
    rows = spark.createDataFrame(AWKWARD_ROWS, AWKWARD)
    formats.write(formats.in_order(rows, "rows"), form, f"file://{tmp_path}/out")
    back = formats.read(spark, form, f"file://{tmp_path}/out", rows.schema)
    assert back.schema.simpleString() == rows.schema.simpleString()
    assert sorted(map(repr, back.collect())) == sorted(map(repr, rows.collect()))


@pytest.mark.parametrize("form", ["JSONLines", "CSV"])
def test_what_a_format_can_not_say_is_refused_with_another_one(spark: SparkSession, tmp_path: Path, form: str) -> None:
    rows = spark.sql("SELECT struct(1 AS k) AS key, struct(map(1, 2) AS m) AS value")
    with pytest.raises(UnsuitableFormatError, match=r"'value' holds a map with keys that are no strings.*use Parquet"):
        formats.write(rows, form, f"file://{tmp_path}/out")
