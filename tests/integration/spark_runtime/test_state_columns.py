"""A version that would read columns of the state for one another does not start: real Spark, real S3 server.

Spark itself accepts each of these versions. Tests share the version whose state it is.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tests.integration.spark_runtime.stateful_kinds import COUNTED, KINDS, CounterOfFrames, keyed, numbers, timed
from tests.integration.spark_runtime.test_rehearsals import below, copy_state, rehearse
from tidegate_spark.contract.protocol import EXIT_OK, Pin
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalResult
from tidegate_spark.process.spark.sparkconf import CHECKPOINT_FILES, ROCKSDB_CLASS
from tidegate_spark.queries.state.state_guard import CHECK, StateGuard
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.streaming_queries import Bench
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

PIN = "up-uid-1-1"
SCRIPT, OFTEN = "grouped_twice.py", "300 milliseconds"
ROCKSDB = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB_CLASS}
BOTH = "its state has the key columns [shop, item], and this version [item, shop] (operator 0)"


@pytest.fixture(scope="module")
def counted(start_shared: StartDriver) -> DriverProcess:
    """The version whose state it is; it has ended, and a copy of its state is there."""
    old = start_shared("app", SCRIPT, args=("shop,item", OFTEN, "sales"))
    old.await_batch(1, "sales")
    copy_state(old)
    old.kill()
    return old


def test_a_rehearsal_finds_columns_that_change_places(counted: DriverProcess, start_driver: StartDriver) -> None:
    new = rehearse(start_driver, counted.config.storage, SCRIPT, "item,shop", OFTEN, "sales")
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    assert (end.result, end.what) == (RehearsalResult.FAILED, Reason.STATE_SCHEMA)
    assert BOTH in new.termination.message


def test_without_a_rehearsal_nothing_is_written(
    counted: DriverProcess, start_driver: StartDriver, object_store: ObjectStore
) -> None:
    place = counted.config.storage

    def checkpoint() -> set[str]:
        return set(below(object_store, place, "lineages"))

    before = checkpoint()
    new = start_driver("app", SCRIPT, args=("item,shop", OFTEN, "sales"), storage=place, epoch=2)
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    assert (new.termination.reason, BOTH in new.termination.message) == (Reason.STATE_SCHEMA, True)
    assert checkpoint() == before


def test_a_column_with_another_name_is_said_in_an_event(counted: DriverProcess, start_driver: StartDriver) -> None:
    place = counted.config.storage
    new = start_driver("app", SCRIPT, args=("store,item", OFTEN, "sales"), storage=place, epoch=3, pin=Pin(PIN, "v1"))

    def reported() -> list[str]:
        report = new.report()
        return [notice.message for notice in report.notices if notice.reason == "StateSchema"] if report else []

    wait_for("the event", lambda: new.ended() or reported(), 600)
    assert "has the key columns [shop, item], and this version [store, item]" in reported()[0], new.output[-3000:]
    new.await_batch(new.batch("sales") + 1, "sales")


# --- state of each kind ----------------------------------------------------------------------------------------------


class Stateful:
    """Queries and their checkpoints, looked at as a driver does before it starts one."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.reported = spark, folder, list[str]()
        self.guard = StateGuard(str(folder / "work"), lambda reason, message, warning: self.reported.append(message))

    def run(self, made: DataFrame, mode: str = "update") -> None:
        Bench(self.spark, ROCKSDB, lambda: made, mode).run(self.folder / "checkpoint", 0)

    def refusal_of(self, made: DataFrame, mode: str = "update") -> str:
        checkpoint = str(self.folder / "checkpoint")
        return self.guard.refusal_of(made.writeStream.outputMode(mode), "q", checkpoint, None)


@pytest.fixture
def stateful(spark: SparkSession, tmp_path: Path) -> Iterator[Stateful]:
    found = Stateful(spark, tmp_path)
    for key, value in ROCKSDB.items():
        spark.conf.set(key, value)
    yield found
    assert list((tmp_path / "work").glob("*")) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_version_that_changes_nothing_starts(kind: str, stateful: Stateful) -> None:
    of = KINDS[kind]
    stateful.run(of.query(stateful.spark), of.mode)
    assert stateful.refusal_of(of.query(stateful.spark), of.mode) == ""
    assert stateful.reported == []


def aggregated(spark: SparkSession, *keys: str) -> DataFrame:
    return keyed(numbers(spark)).groupBy(*keys).count()


def in_sessions(spark: SparkSession, *keys: str) -> DataFrame:
    return keyed(timed(spark)).groupBy(F.session_window("timestamp", "1 minute"), *keys).count()


def deduplicated(spark: SparkSession, *keys: str) -> DataFrame:
    return keyed(numbers(spark)).select(*keys).dropDuplicates(list(keys))


def with_processor(spark: SparkSession, *keys: str) -> DataFrame:
    return keyed(numbers(spark)).groupBy(*keys).transformWithStateInPandas(CounterOfFrames(), COUNTED, "update", "None")


SWAPPED: dict[str, tuple[Any, str]] = {
    "aggregation": (aggregated, "update"),
    "sessions": (in_sessions, "append"),
    "deduplication": (deduplicated, "append"),
    "transformWithState": (with_processor, "update"),
}


@pytest.mark.parametrize("kind", SWAPPED)
def test_keys_that_change_places_are_found_in_state_of_each_kind(kind: str, stateful: Stateful) -> None:
    query, mode = SWAPPED[kind]
    stateful.run(query(stateful.spark, "key", "value"), mode)
    why = stateful.refusal_of(query(stateful.spark, "value", "key"), mode)
    assert "Spark would read one for another" in why


ENCODING = "spark.sql.streaming.stateStore.encodingFormat"


@pytest.mark.parametrize(
    ("key", "value"),
    [(CHECKPOINT_FILES, "of.an.image.that.takes.no.local.Folder"), (ENCODING, "avro")],
    ids=["checkpoint files by another class", "another encoding than the state's"],
)
def test_settings_of_the_version_do_not_keep_its_columns_from_being_compared(
    key: str, value: str, stateful: Stateful
) -> None:
    stateful.run(aggregated(stateful.spark, "key", "value"))
    stateful.spark.conf.set(key, value)
    try:
        why = stateful.refusal_of(aggregated(stateful.spark, "value", "key"))
    finally:
        stateful.spark.conf.unset(key)
    assert "Spark would read one for another" in why
    assert stateful.reported == []


def test_state_that_cannot_be_compared_is_said(stateful: Stateful) -> None:
    stateful.run(aggregated(stateful.spark, "key", "value"))
    metadata = stateful.folder / "checkpoint" / "state" / "0" / "_metadata"
    for path in (path for path in metadata.rglob("*") if path.is_file()):
        path.unlink() if path.suffix == ".crc" else path.write_text("v99\n{}")
    assert stateful.refusal_of(aggregated(stateful.spark, "value", "key")) == ""
    assert "The columns of the state of query 'q' are not compared with those of the version: " in stateful.reported[0]


def test_state_of_which_no_batch_was_committed_binds_nobody(stateful: Stateful) -> None:
    stateful.run(aggregated(stateful.spark, "key", "value"))
    shutil.rmtree(stateful.folder / "checkpoint" / "commits")
    assert stateful.refusal_of(aggregated(stateful.spark, "value", "key")) == ""


def test_who_has_spark_compare_nothing_is_not_refused(stateful: Stateful) -> None:
    stateful.run(aggregated(stateful.spark, "key", "value"))
    stateful.spark.conf.set(CHECK, "false")
    try:
        assert stateful.refusal_of(aggregated(stateful.spark, "value", "key")) == ""
    finally:
        stateful.spark.conf.unset(CHECK)
    assert stateful.refusal_of(aggregated(stateful.spark, "value", "key"))
