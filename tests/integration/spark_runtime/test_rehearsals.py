"""A new version is rehearsed on a copy of the state while the old one runs; real S3 server, real Spark.

Each test does what an upgrade does: the old version runs, its agent is told to take the copy, and the process of the
rehearsal begins with that. Nothing it puts out leaves, and it names what fails.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.protocol import EXIT_APPLICATION, EXIT_OK, Reason, StartFrom, Storage, to_json
from tidegate_spark.rehearsal_protocol import Rehearsal, RehearsalResult, RehearsalWhat, rehearsal_place
from tidegate_spark.snapshot_protocol import SnapshotOrder, SnapshotOrders
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

COPY = "up-uid-1-1-copy"
PASSED, FAILED, INCONCLUSIVE = RehearsalResult.PASSED, RehearsalResult.FAILED, RehearsalResult.INCONCLUSIVE


def below(store: ObjectStore, place: Storage, *parts: str) -> list[str]:
    keys = store.keys(place.bucket, place.key(*parts) + "/")
    return [key.removeprefix(place.prefix + "/") for key in keys if not key.endswith("/")]


def copy_state(driver: DriverProcess, store: ObjectStore, place: Storage) -> None:
    """Have the state of a driver that runs copied, as an upgrade does."""
    orders = SnapshotOrders(take=(SnapshotOrder(COPY, holders=(COPY,)),))
    status, answer = driver.command("POST", "/v1/snapshots", json.loads(to_json(orders)))
    assert status == 202, answer
    wait_for("the copy", lambda: f"snapshots/{COPY}/manifest.json" in below(store, place, "snapshots"), 60)


def rehearse(start: StartDriver, place: Storage, script: str, *args: str, **fields: Any) -> DriverProcess:
    """Start the process of a rehearsal, as its pod does."""
    wanted = Rehearsal(fields.pop("batches", 3), fields.pop("timeout_seconds", 200))
    return start(
        "app",
        script,
        args=args,
        storage=rehearsal_place(place, COPY),
        start_from=StartFrom(place, COPY, COPY),
        rehearsal=wanted,
        stop_grace_seconds=30,
        **fields,
    )


@pytest.fixture
def copied(start_driver: StartDriver, place: Storage, object_store: ObjectStore) -> DriverProcess:
    """The old version, which counts and runs on, and a copy of its state."""
    old = start_driver("app", "counting.py")
    old.await_batch(3)
    copy_state(old, object_store, place)
    return old


# --- the old version, and what is left -------------------------------------------------------------------------------


def test_a_version_that_passes_leaves_the_old_one_and_the_storage_as_they_were(
    copied: DriverProcess, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    before = copied.batch()
    new = rehearse(start_driver, place, "counting.py")
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    assert (end.result, new.termination.reason) == (PASSED, Reason.COMPLETED)
    assert end.committed["main"] >= 3
    assert below(object_store, place, "rehearsals") == []
    assert not copied.ended()
    copied.await_batch(before + 3)
    assert [key for key in below(object_store, place, "logs") if key.endswith("-rehearsal/driver.log")]


def test_what_a_killed_one_leaves_goes_with_the_copy(
    copied: DriverProcess, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    new = rehearse(start_driver, place, "counting.py", batches=1000)
    offsets = f"rehearsals/{COPY}/lineages/1/main/offsets"
    wait_for("its first batch", lambda: below(object_store, place, offsets) or new.ended(), 200)
    new.kill()
    assert below(object_store, place, "rehearsals")
    orders = SnapshotOrders(dispose=(COPY,))
    assert copied.command("POST", "/v1/snapshots", json.loads(to_json(orders)))[0] == 202
    wait_for("its end", lambda: not below(object_store, place, "rehearsals"), 60)
    assert not copied.ended()


# --- no output leaves ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["foreachBatch", "foreach", "json", "parquet", "table", "memory", "console"], ids=str)
def test_no_output_leaves(
    kind: str, start_driver: StartDriver, place: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    output, unused = tmp_path / "output", tmp_path / "old"
    output.mkdir()
    unused.mkdir()
    # A query in memory has a name, and so the old one must have it.
    query, before = ("rehearsed", "memory") if kind == "memory" else ("main", "noop")
    old = start_driver("app", "rehearsed_outputs.py", args=(before, str(unused)))
    old.await_batch(2, query)
    copy_state(old, object_store, place)
    new = rehearse(start_driver, place, "rehearsed_outputs.py", kind, str(output))
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    assert (end.result, end.committed[query] >= 3) == (PASSED, True)
    assert list(output.rglob("*")) == []
    assert not list(Path.cwd().glob("spark-warehouse/rehearsed*"))
    assert "Batch: " not in new.output


def test_no_record_reaches_kafka(start_driver: StartDriver, place: Storage, object_store: ObjectStore) -> None:
    # Nothing listens there: a query that wrote to it would fail.
    old = start_driver("app", "rehearsed_outputs.py", args=("noop", "nowhere"))
    old.await_batch(2)
    copy_state(old, object_store, place)
    new = rehearse(start_driver, place, "rehearsed_outputs.py", "kafka", "127.0.0.1:1")
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    assert end.result is PASSED


def test_what_a_file_sink_remembers_is_not_touched(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    old = start_driver("app", "writing.py", args=(str(output),), lineage=1)
    old.await_batch(3)
    copy_state(old, object_store, place)
    old.terminate()
    old.exit_code()
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    new = rehearse(start_driver, place, "writing.py", str(output))
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before


# --- what fails is named ---------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[str, RehearsalWhat]] = {
    "a state schema": ("schema", RehearsalWhat.STATE_SCHEMA),
    "another operator": ("operator", RehearsalWhat.PLAN),
    "one source more": ("source", RehearsalWhat.PLAN),
    "a column that is not there": ("column", RehearsalWhat.PLAN),
    "an exception": ("exception", RehearsalWhat.EXCEPTION),
}


@pytest.mark.parametrize(("change", "what"), CHANGES.values(), ids=CHANGES.keys())
def test_what_fails_is_named(
    change: str, what: RehearsalWhat, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    old = start_driver("app", "evolving.py", args=("same",))
    old.await_batch(2)
    copy_state(old, object_store, place)
    far = str(20 * (old.batch() + 3))
    new = rehearse(start_driver, place, "evolving.py", change, far, batches=30)
    assert new.exit_code() == EXIT_APPLICATION, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    print(f"{change}: {new.termination.exception}: {new.termination.message}")
    assert (end.result, end.what) == (FAILED, what), new.termination
    assert not old.ended()
    assert below(object_store, place, "rehearsals") == []
    assert dataclasses.replace(new.termination, rehearsal=None).reason is Reason.APPLICATION_FAILED


def test_too_few_batches_in_time_say_nothing(copied: DriverProcess, start_driver: StartDriver, place: Storage) -> None:
    new = rehearse(start_driver, place, "counting.py", batches=100_000, timeout_seconds=60)
    new.exit_code()
    end = new.termination.rehearsal
    assert end is not None
    assert end.result is INCONCLUSIVE, new.output[-3000:]
    assert not copied.ended()
