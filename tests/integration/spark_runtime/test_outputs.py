"""A fork does not write where its original writes. Real S3 server, real Spark."""

import json
from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, StartFrom, Storage, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SNAPSHOT_COMMAND, SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_spark.queries.sinks.output_registry import OUTPUTS_FILE
from tidegate_spark.queries.sinks.outputs import Output, Outputs
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

SCRIPT = "several_outputs.py"


def take(driver: DriverProcess, name: str) -> None:
    """Have a snapshot taken; return when it is complete."""
    order = SnapshotOrders(take=(SnapshotOrder(name),))
    assert driver.command("POST", SNAPSHOT_COMMAND, json.loads(to_json(order)))[0] == 202

    def is_ready() -> bool:
        report = driver.report()
        return report is not None and any(s.state is SnapshotState.READY for s in report.snapshots if s.id == name)

    wait_for(f"snapshot {name}", is_ready, 300, 0.2)


def noted(store: ObjectStore, place: Storage) -> Outputs:
    return from_json(Outputs, store.text(place.bucket, place.key(OUTPUTS_FILE)))


def test_a_fork_is_refused_where_its_original_writes_and_runs_with_outputs_of_its_own(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    origin = start_driver("origin", SCRIPT, args=(here, "files", "function", "shown"), program="f00d")
    origin.await_batch(2, "files")
    origin.await_batch(1, "function")
    place = origin.config.storage
    assert noted(object_store, place) == Outputs(
        place.uri, "f00d", {"files": Output("path", f"{here}/files"), "function": Output("foreachbatch")}
    )
    take(origin, "a")
    origin.kill()

    start_from = StartFrom(place, "a", holder="fork-uid-of-variant")
    fork = start_driver("variant", SCRIPT, args=(here, "files"), start_from=start_from, apart=True)
    assert fork.exit_code() == EXIT_OK, fork.output[-3000:]
    end = fork.termination
    assert end.reason is Reason.QUERY_REFUSED
    assert f"it would write to path '{here}/files', where query 'files' of" in end.message
    assert "spec.startFrom.outputs to TakeOver" in end.message

    # Nothing of it had run: with outputs of its own it begins where the snapshot ends.
    ways = ("files", "function", "shown", "kafka")
    fork = start_driver("variant", SCRIPT, args=(there, *ways), start_from=start_from, apart=True, program="beef")
    wait_for("its note", lambda: is_whole(object_store, fork.config.storage), 600, 0.5)
    assert noted(object_store, fork.config.storage).queries == {
        "files": Output("path", f"{there}/files"),
        "function": Output("foreachbatch"),
        "kafka": Output("kafka", "said", ("127.0.0.1:1",)),
    }


def is_whole(store: ObjectStore, place: Storage) -> bool:
    if not store.keys(place.bucket, place.key(OUTPUTS_FILE)):
        return False
    return "kafka" in noted(store, place).queries


@pytest.mark.long
def test_who_takes_the_originals_place_runs_the_batches_again_that_it_had_written_after_the_snapshot(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    origin = start_driver("origin", SCRIPT, args=(str(tmp_path), "files"))
    origin.await_batch(2, "files")
    take(origin, "a")
    last = origin.batch("files")
    origin.await_batch(last + 2, "files")
    origin.kill()
    start_from = StartFrom(origin.config.storage, "a", holder="fork-uid-of-heir")
    heir = start_driver("heir", SCRIPT, args=(str(tmp_path), "files"), start_from=start_from)
    heir.await_batch(last + 3, "files")
    report = heir.report()
    assert report is not None
    assert "FileSinkRolledBack" in {notice.reason for notice in report.notices}
