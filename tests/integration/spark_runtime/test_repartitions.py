"""State of real queries repartitioned by Spark, looked at before and after, and gone on with as if nothing had been.

First each operator on a checkpoint on this machine; then a whole application, by the pod's program on a real S3 server.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.integration.spark_runtime.conftest import ACCESS, SECRET, StartDriver
from tests.integration.spark_runtime.stateful_kinds import KINDS, grouped, in_one_place
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import OPERATORS, REPARTITION_VARIABLE, Repartition, find_obstacle
from tidegate_spark.exports import state_reader
from tidegate_spark.repartition import fingerprints, job
from tidegate_spark.repartition.fingerprints import Contents
from tidegate_spark.snapshots.manifest import QueryAt
from tidegate_spark.snapshots.service.operations import state_facts
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.streaming_queries import Bench, copy, read_batch
from tidegate_testing.waiting import wait_for

STATE = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB = {"spark.sql.streaming.stateStore.providerClass": f"{STATE}.RocksDBStateStoreProvider"}
OURS = {**ROCKSDB, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
CHANGELOG = {**OURS, "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
FORMATS = {"format 1": ROCKSDB, "format 2": OURS, "format 2 with changelog": CHANGELOG}
HDFS = {"spark.sql.streaming.stateStore.providerClass": f"{STATE}.HDFSBackedStateStoreProvider"}
BEFORE, LAST, MORE = 4, 3, 3
PARTITIONS = {"spark.sql.shuffle.partitions": str(BEFORE)}
DONT_WAIT = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}


def contents(spark: SparkSession, checkpoint: Path, batch: int, partitions: int) -> Contents:
    at = as_taken(checkpoint, batch)
    session = state_reader.session_at(spark, at)
    stores = state_reader.stores_of(session, str(checkpoint))
    return fingerprints.read_contents(session, str(checkpoint), batch, partitions, stores)


def as_taken(checkpoint: Path, batch: int) -> QueryAt:
    found = read_batch(checkpoint, batch)
    return QueryAt(batch, found.offsets, dict(found.facts))


def repartition(spark: SparkSession, checkpoint: Path, batch: int, partitions: int) -> None:
    """Do what the pod does to one checkpoint: divide it, and leave only what the new batch needs of the state."""
    session = job.session_for(spark, as_taken(checkpoint, batch))
    job._repartition(session, str(checkpoint), partitions)
    kept = {file.path for file in read_batch(checkpoint, batch + 1).files}
    for path in sorted((checkpoint / "state").rglob("*"), reverse=True):
        if path.is_file() and str(path.relative_to(checkpoint)) not in kept:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


RICHEST = "transformWithState"
"""Variables and timers, in a store of each."""


def kinds_and_formats() -> Iterator[Any]:
    for kind in KINDS:
        marks = () if kind == RICHEST else (pytest.mark.long,)
        yield pytest.param(kind, "format 2 with changelog", marks=marks)
    for kind, form in (("aggregation", "format 1"), ("join", "format 2")):
        yield pytest.param(kind, form, marks=pytest.mark.long)


@pytest.mark.parametrize(("kind", "form"), list(kinds_and_formats()))
def test_state_is_the_same_after_it_was_repartitioned_and_the_query_goes_on_as_if_it_had_not_been(
    spark: SparkSession, tmp_path: Path, kind: str, form: str
) -> None:
    wanted = KINDS[kind]
    bench = Bench(spark, {**FORMATS[form], **PARTITIONS, **DONT_WAIT}, lambda: wanted.query(spark), wanted.mode)
    original = tmp_path / "original"
    bench.run(original, LAST)
    kept = copy(original, [file.path for file in read_batch(original, LAST).files], tmp_path / "kept")
    undisturbed = bench.run(original, LAST + MORE)
    rows = bench.rows_of_state[LAST + 1]
    assert wanted.operator in state_facts(dict(read_batch(kept, LAST).facts)).operators
    batch, partitions = LAST, BEFORE
    for fewer_or_more in (8, 3):
        before = contents(spark, kept, batch, partitions)
        assert before.rows > 0
        assert before.misplaced == {}
        repartition(spark, kept, batch, fewer_or_more)
        batch, partitions = batch + 1, fewer_or_more
        assert fingerprints.difference(before, contents(spark, kept, batch, partitions)) == ""
        assert state_facts(dict(read_batch(kept, batch).facts)).partitions == partitions
    outputs = bench.run(kept, batch + MORE)
    assert sum(rows) > 0
    assert bench.rows_of_state[batch + 1] == rows
    if wanted.compared:
        later = [outputs[number] for number in sorted(outputs) if number > batch]
        assert later[:MORE] == [undisturbed[number] for number in range(LAST + 1, LAST + 1 + MORE)]


def test_each_operator_that_is_said_to_be_repartitionable_is_repartitioned_here() -> None:
    assert {kind.operator for kind in KINDS.values()} == OPERATORS


def test_a_row_that_is_lost_or_changed_shows(spark: SparkSession, tmp_path: Path) -> None:
    bench = Bench(spark, {**OURS, **PARTITIONS}, lambda: grouped(spark), "update")
    bench.run(tmp_path / "query", LAST)
    one, other = (contents(spark, tmp_path / "query", batch, BEFORE) for batch in (LAST - 1, LAST))
    assert "other values" in fingerprints.difference(one, other)


@pytest.mark.parametrize(
    ("settings", "query", "what"),
    [(HDFS, grouped, Reason.UNSUPPORTED_PROVIDER), (OURS, in_one_place, Reason.STATE_IN_ONE_PLACE)],
)
def test_what_spark_can_not_repartition_is_known_from_the_checkpoint_alone(
    spark: SparkSession,
    tmp_path: Path,
    settings: Mapping[str, str],
    query: Callable[[SparkSession], DataFrame],
    what: Reason,
) -> None:
    bench = Bench(spark, {**settings, **PARTITIONS}, lambda: query(spark), "update")
    bench.run(tmp_path / "query", LAST)
    obstacle = find_obstacle({"main": state_facts(dict(read_batch(tmp_path / "query", LAST).facts))}, 8, spark.version)
    assert obstacle is not None
    assert obstacle.what is what


def test_a_file_sinks_readers_need_the_entry_of_the_batch_that_put_nothing_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    from tidegate_spark.queries.sinks import file_sinks  # noqa: PLC0415 - beside the one test that needs it

    out, checkpoint, arrived = tmp_path / "out", tmp_path / "query", tmp_path / "arrived"
    arrived.mkdir()
    often = {"spark.sql.streaming.fileSink.log.compactInterval": "3"}
    for key, value in {**OURS, **PARTITIONS, **DONT_WAIT, **often}.items():
        spark.conf.set(key, value)

    def run(files: int) -> int:
        """Take in more files, a batch for each; return the last batch, which is committed."""
        for _ in range(files):
            number = len(list(arrived.iterdir()))
            (arrived / f"{number}.txt").write_text("\n".join(f"{number} {row}" for row in range(40)))
        rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(arrived)).dropDuplicates(["value"])
        writer = rows.writeStream.format("json").option("path", str(out)).option("checkpointLocation", str(checkpoint))
        query = writer.start()
        query.processAllAvailable()
        query.stop()
        return max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())

    last = run(4)
    repartition(spark, checkpoint, last, 8)
    sink, reports = file_sinks.Sink(str(out)), []
    file_sinks.note_without_output(spark, sink, last + 1, lambda reason, message: reports.append(reason))
    file_sinks.note_without_output(spark, sink, last + 1, lambda reason, message: reports.append(reason))
    assert reports == ["FileSinkContinued"]
    assert run(4) == last + 1 + 4  # so that the log is merged on the way
    found = Counter(row.value for row in spark.read.json(str(out)).collect())
    assert found == Counter(f"{number} {row}" for number in range(8) for row in range(40))


# --- the whole way, by the pod's program -----------------------------------------------------------------------------


def run_pod(old: DriverProcess, order: Repartition, epoch: int, folder: Path) -> tuple[int, Termination]:
    """Run the pod's program on what a driver left; return its exit code and termination message."""
    config = dataclasses.replace(old.config, epoch=epoch)
    pod = DriverProcess(config, folder, old.jars)
    pod.put_credentials(ACCESS, SECRET)
    variables = {
        **os.environ,
        **pod._variables(),
        REPARTITION_VARIABLE: to_json(order),
        CONFIG_VARIABLE: to_json(config),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tidegate_spark.repartition_pod"], env=variables, capture_output=True, check=False
    )
    termination = (folder / "termination").read_text() if (folder / "termination").exists() else ended.stderr.decode()
    return ended.returncode, from_json(Termination, termination)


def reported(driver: DriverProcess) -> dict[int, dict[str, int]]:
    lines = [line.partition("told ")[2] for line in driver.output.splitlines() if line.startswith("told ")]
    return dict(map(json.loads, lines))


@pytest.fixture(scope="module")
def again(start_shared: StartDriver, object_store: ObjectStore) -> tuple[DriverProcess, DriverProcess]:
    """A driver, and the next one, which found what a pod left that was lost; both have stopped."""
    old = start_shared("app", "reporting.py")
    old.await_batch(2)
    old.terminate()
    old.exit_code()
    place, order = old.config.storage, to_json(Repartition(8, "up-1", 1, 2))
    for key, body in (("repartitions/2.json", order), ("lineages/2/main/offsets/0", "v1")):
        object_store.client.put_object(Bucket=place.bucket, Key=place.key(key), Body=body.encode())
    new = start_shared("app", "reporting.py", epoch=3)
    new.await_batch(old.termination.batches["main"] + 2)

    def nothing_left() -> bool:
        new.must_run()
        prefixes = (place.key("repartitions") + "/", place.key("lineages", "2") + "/")
        return not any(object_store.keys(place.bucket, prefix) for prefix in prefixes)

    wait_for("nothing to be left", nothing_left, 600)
    new.terminate()
    new.exit_code()
    return old, new


def test_the_next_driver_removes_what_a_pod_left_that_was_lost_and_nothing_of_its_own(
    again: tuple[DriverProcess, DriverProcess], object_store: ObjectStore
) -> None:
    old, new = again
    place, last = old.config.storage, old.termination.batches["main"]
    assert min(reported(new)) == last + 1
    commits = object_store.keys(place.bucket, place.key("lineages", "1") + "/main/commits/")
    assert max(int(key.rpartition("/")[2]) for key in commits) == new.termination.batches["main"] > last


def test_an_application_goes_on_in_the_lineage_that_the_pod_made(
    again: tuple[DriverProcess, DriverProcess], start_shared: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    _, old = again
    last, place = old.termination.batches["main"], old.config.storage
    before = object_store.keys(place.bucket, place.key("lineages", "1") + "/")
    code, message = run_pod(old, Repartition(8, "up-2", 1, 2, heap_mib=512), 4, tmp_path / "pod")
    assert (code, message.reason, message.message) == (0, Reason.COMPLETED, message.message), message
    assert message.repartition is not None
    assert (message.repartition.lineage, message.repartition.queries["main"].rows) == (2, 5)
    assert object_store.keys(place.bucket, place.key("lineages", "1") + "/") == before
    new = start_shared("app", "reporting.py", epoch=5, lineage=2, state_partitions=8)
    new.await_batch(last + 4)
    new.terminate()
    new.exit_code()
    seen = reported(new)
    # Batch last + 1 is the repartition, which reads nothing and puts nothing out.
    assert min(seen) == last + 2
    assert all(counts == {str(key): 4 * number for key in range(5)} for number, counts in seen.items())
