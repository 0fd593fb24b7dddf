"""One `dump-state` in a run that is repeated: equal files, by bytes; real S3 server, real Spark.

The storage is copied inside of the batches with which the message comes into force: their offsets are written, and
none of them is committed. The process goes on to a dump. Then the storage is as it was in the copy, which is what a
kill at that moment would have left, and another process runs the batches again.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from pyspark.sql import SparkSession

from tidegate_spark.contract.control_protocol import CONTROL_COMMAND, ControlOrder, ControlOrders, MessageState
from tidegate_spark.contract.protocol import Storage, to_json
from tidegate_spark.contract.snapshot_protocol import EXPORT_FORMATS, ExportOrder
from tidegate_spark.exports.job import Exporter
from tidegate_spark.exports.manifest import EXPORT_PREFIX
from tidegate_spark.process.spark.sparkconf import ROCKSDB_CLASS
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.reach import reach_repository
from tidegate_spark.storage.s3_client import Credentials
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.streaming_queries import spark_here
from tidegate_testing.waiting import wait_for

from .conftest import ACCESS, SECRET, StartDriver

pytestmark = pytest.mark.long
QUERIES = ("shoppers", "sums")
SNAPSHOT = "control-dump-1"
"""The message's."""
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB_CLASS}
    with spark_here(tmp_path_factory.mktemp("spark"), settings) as session:
        yield session


def objects(store: ObjectStore, place: Storage) -> Files:
    """Return all of an application's storage; what is removed meanwhile may be missing."""
    found = {}
    for key in store.keys(place.bucket, place.prefix + "/"):
        try:
            found[key] = store.client.get_object(Bucket=place.bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
    return found


def put_back(store: ObjectStore, place: Storage, wanted: Files) -> None:
    """Have nothing but ``wanted`` there."""
    for key in store.keys(place.bucket, place.prefix + "/"):
        store.client.delete_object(Bucket=place.bucket, Key=key)
    for key, content in wanted.items():
        store.client.put_object(Bucket=place.bucket, Key=key, Body=content)


def offer(driver: DriverProcess, hold: Path) -> None:
    """Offer the two messages, as an operator does to each process: the log takes them once."""
    orders = (
        ControlOrder("hold-1", "reload-config", json.dumps({"hold": str(hold)})),
        ControlOrder("dump-1", "dump-state", json.dumps({"format": "JSONLines"})),
    )
    assert driver.command("POST", CONTROL_COMMAND, json.loads(to_json(ControlOrders(orders))))[0] == 202


def dumped_batches(driver: DriverProcess) -> dict[str, int]:
    """Wait until the dump's snapshot is complete; return the batch of each query with which it came into force."""

    def probe() -> dict[str, int]:
        driver.must_run()
        report = driver.report()
        assert report is not None
        found = next((each for each in report.control.messages if each.id == "dump-1"), None)
        assert found is not None
        assert found.state is MessageState.DONE, found
        assert found.results["snapshot"] == SNAPSHOT
        return {name: reported.batch for name, reported in found.queries.items()}

    return wait_for("the dump", probe, 600, 0.2)


def exported(spark: SparkSession, store: ObjectStore, place: Storage, work: Path) -> Files:
    """Export the snapshot in each format, as its pod does; return all files, by the export and the path in it."""
    repository = reach_repository(place, Credentials(ACCESS, SECRET))
    for form in EXPORT_FORMATS:
        (work / form).mkdir(parents=True)
        Exporter(repository, ExportOrder(form, SNAPSHOT, form, form), lambda: spark, work / form, Copiers(1)).run()
    root = place.key(EXPORT_PREFIX) + "/"
    found = objects(store, place)
    return {key.removeprefix(root): content for key, content in found.items() if key.startswith(root)}


@dataclass(frozen=True)
class Repeated:
    """What came of the same message, twice."""

    batches: dict[str, int]
    batches_again: dict[str, int]
    begun: Files
    """The storage inside of those batches."""
    place: Storage
    files: Files
    files_again: Files


@pytest.fixture(scope="module")
def repeated(
    start_shared: StartDriver, object_store: ObjectStore, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Repeated:
    """A run that nobody disturbs, and then from inside of the dump's batches on again."""
    folder = tmp_path_factory.mktemp("dumps")
    go = folder / "go"
    first = start_shared("app", "dumped.py")
    for query in QUERIES:
        first.await_batch(2, query)
    offer(first, go)
    wait_for("batches that are held", lambda: all(f"held {name} " in first.output for name in QUERIES), 600, 0.1)
    place = first.config.storage
    begun = objects(object_store, place)
    go.touch()
    batches = dumped_batches(first)
    first.kill()
    files = exported(spark, object_store, place, folder / "first")

    put_back(object_store, place, begun)
    second = start_shared("app", "dumped.py", epoch=2)
    wait_for("an agent", second.report, 600, 0.2)
    offer(second, go)
    batches_again = dumped_batches(second)
    second.kill()
    files_again = exported(spark, object_store, place, folder / "second")
    return Repeated(batches, batches_again, begun, place, files, files_again)


def test_the_batches_of_the_dump_had_begun_and_were_not_committed(repeated: Repeated) -> None:
    assert repeated.batches.keys() == set(QUERIES)
    for query, batch in repeated.batches.items():
        assert repeated.place.key(f"lineages/1/{query}/offsets/{batch}") in repeated.begun
        assert repeated.place.key(f"lineages/1/{query}/commits/{batch}") not in repeated.begun
    assert not any(f"/{SNAPSHOT}/" in key for key in repeated.begun)


def test_the_same_dump_in_a_run_that_is_repeated_has_the_same_batches_and_equal_bytes(repeated: Repeated) -> None:
    assert repeated.batches_again == repeated.batches
    assert repeated.files_again.keys() == repeated.files.keys()
    different = [name for name, content in repeated.files.items() if repeated.files_again[name] != content]
    assert different == []


def test_a_dump_has_all_state_in_each_format(repeated: Repeated) -> None:
    tables = {"manifest", "shoppers/0-recent", "shoppers/0-seen", "shoppers/0-~24timers", "sums/0-default"}
    names = {name.rpartition(".")[0] for name in repeated.files}
    assert names == {f"{form}/{table}" for form in EXPORT_FORMATS for table in tables}
    lines = repeated.files["JSONLines/shoppers/0-recent.jsonl"].decode().splitlines()
    # Twenty in each batch, from the first to the dump's; a line for each key.
    assert sum(len(json.loads(line)["list_value"]) for line in lines) == 20 * (repeated.batches["shoppers"] + 1)
