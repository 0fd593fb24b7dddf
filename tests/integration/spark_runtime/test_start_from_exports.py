"""From a query to its export to another query: by a driver and a pod over real S3, and with inputs of real Kafka."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from devcluster import kafka
from devcluster.site import LocalSite
from tidegate_spark import initial_state, starting_offsets
from tidegate_spark.contract.protocol import EXIT_OK
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import ExportOrder, SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_spark.process.spark.sparkconf import ROCKSDB_CLASS
from tidegate_testing import spark_jars
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.exports import SnapshotOf
from tidegate_testing.snapshot_pods import run_pod
from tidegate_testing.streaming_queries import Bench, spark_here

from .conftest import ACCESS, SECRET, StartDriver

# --- by a driver and a pod ---


def reported(driver: DriverProcess) -> dict[int, dict[str, int]]:
    """Return what ``remembering.py`` said of each batch."""
    # The last line may be half written.
    lines = [line.partition(" ")[2] for line in driver.output.split("\n")[:-1] if line.startswith("told ")]
    return dict(map(json.loads, lines))


@pytest.mark.long
def test_what_a_pod_exports_is_what_another_application_starts_from(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    origin = start_driver("origin", "remembering.py")
    origin.await_batch(3)
    origin.terminate()
    origin.exit_code()
    pod = partial(run_pod, origin.config, keys=(ACCESS, SECRET), work=tmp_path / "work")
    (tmp_path / "work").mkdir()
    code, reports = pod(SnapshotOrders(take=(SnapshotOrder("a"),)), tmp_path / "pod-1")
    assert (code, reports["a"].state) == (EXIT_OK, SnapshotState.READY)
    batch = reports["a"].queries["main"].batch

    order = ExportOrder("look", "a", "a-1", "Parquet", heap_mib=512)
    code, reports = pod(SnapshotOrders(export=(order,)), tmp_path / "pod-2")
    found = reports["look"]
    assert (code, found.state, found.rows, found.files) == (EXIT_OK, SnapshotState.EXPORTED, 5, 1), reports
    place = origin.config.storage
    assert found.manifest == f"s3://{place.bucket}/{place.key('exports/a-1/manifest.json')}"
    assert f"{place.key('exports')}/a-1/main/0-count.parquet" in object_store.keys(place.bucket, place.key("exports"))
    assert list((tmp_path / "work").iterdir()) == []

    other = ExportOrder("look", "a", "a-1", "CSV", heap_mib=512)
    code, reports = pod(SnapshotOrders(export=(other,)), tmp_path / "pod-3")
    assert (code, reports["look"].reason) == (EXIT_OK, Reason.EXPORT_EXISTS)

    # Four of each key in each batch, on top of what was there.
    again = start_driver("again", "remembering.py", args=("begin",), export=found.manifest, state_partitions=3)
    again.await_batch(2)
    # The way to another number of partitions where Spark cannot divide state: the export knows of none.
    assert origin.config.state_partitions != 3
    report = again.report()
    assert report is not None
    assert [query.state_partitions for query in report.queries] == [3]
    assert reported(again)[1] == {str(key): 4 * (batch + 1) + 8 for key in range(5)}
    before = max(reported(again))
    again.kill()
    again.start()
    again.await_batch(before + 2)
    wrong = {n: c for n, c in reported(again).items() if c != {str(key): 4 * (batch + n + 2) for key in range(5)}}
    assert wrong == {}


def test_a_script_that_asks_for_nothing_of_it_does_not_start_from_nothing(start_driver: StartDriver) -> None:
    driver = start_driver("app", "remembering.py", args=("forget",), export="s3://b/exports/a-1/manifest.json")
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.QUERY_REFUSED
    assert "s3://b/exports/a-1/manifest.json (spec.startFrom.exportedState)" in driver.termination.message


# --- with inputs of Kafka ---

TOPIC = "numbers"
BEFORE, BETWEEN = 200, 150


class Sum(StatefulProcessor):
    """Keeps the sum and the number of a digit's numbers; as a text in the version that starts from an export."""

    kind = "BIGINT"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.sum: Any = handle.getValueState("sum", f"s {self.kind}, n {self.kind}")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        total, number = map(int, self.sum.get()) if self.sum.exists() else (0, 0)
        for row in rows:
            total, number = total + row.number, number + 1
        self.put(total, number)
        yield Row(digit=key[0], sum=total, n=number)

    def put(self, total: int, number: int) -> None:
        self.sum.update((total, number))

    def close(self) -> None:
        pass


class OtherSum(Sum):
    kind = "STRING"

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        self.put(initialState["sum"]["s"], initialState["sum"]["n"])

    def put(self, total: int, number: int) -> None:
        self.sum.update((str(total), str(number)))


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    connector = ",".join(str(jar) for jar in sorted(spark_jars.fetched("kafka").glob("*.jar")))
    settings = {"spark.jars": connector, "spark.sql.streaming.stateStore.providerClass": ROCKSDB_CLASS}
    with spark_here(tmp_path_factory.mktemp("spark"), settings) as session:
        yield session


def send(broker: str, numbers: range, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": broker, "enable.idempotence": True, "acks": "all"})
    for number in numbers:
        producer.produce(TOPIC, value=str(number), partition=number % partitions)
    assert producer.flush(120) == 0


def sums(spark: SparkSession, broker: str, begins: str, processor: Sum, begun: DataFrame | None) -> DataFrame:
    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", TOPIC)
    records = records.option("startingOffsets", begins).option("maxOffsetsPerTrigger", 60)
    number = F.col("value").cast("string").cast("long")
    keyed = records.load().select(number.alias("number"), (number % 10).alias("digit")).groupBy("digit")
    schema = "digit BIGINT, sum BIGINT, n BIGINT"
    initial = begun.groupBy("digit") if begun is not None else None
    return keyed.transformWithState(processor, schema, "update", "none", initial)


@pytest.mark.long
def test_inputs_of_kafka_are_neither_lost_nor_repeated(spark: SparkSession, broker: str, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": broker})
    for done in admin.create_topics([NewTopic(TOPIC, 2, 1)]).values():
        done.result(30)
    send(broker, range(BEFORE), 2)
    old = Bench(spark, {}, lambda: sums(spark, broker, "earliest", Sum(), None), "update")
    old.run(tmp_path / "old", 1)
    snapshot = SnapshotOf({"sums": tmp_path / "old"})
    snapshot.export(spark, tmp_path / "work", "e", "JSONLines")
    export = snapshot.put_down("e", tmp_path / "export")

    # What comes later, some of it in a partition that was not there.
    for done in admin.create_partitions([NewPartitions(TOPIC, 3)]).values():
        done.result(30)
    send(broker, range(BEFORE, BEFORE + BETWEEN), 3)
    offsets = starting_offsets(spark, partitions={TOPIC: 3}, export=export)
    seen = json.loads(offsets)[TOPIC]
    assert sum(at for at in seen.values() if at >= 0) < BEFORE
    assert seen["2"] == -2

    def anew() -> DataFrame:
        return sums(spark, broker, offsets, OtherSum(), initial_state(spark, export=export))

    batches = -(-(BEFORE + BETWEEN - sum(at for at in seen.values() if at >= 0)) // 60)
    outputs = Bench(spark, {}, anew, "update").run(tmp_path / "new", batches - 1)
    last = {row[0]: row[1:] for _, rows in sorted(outputs.items()) for row in rows}
    numbers = range(BEFORE + BETWEEN)
    expected = {digit: [n for n in numbers if n % 10 == digit] for digit in range(10)}
    assert last == {digit: (sum(of), len(of)) for digit, of in expected.items()}
