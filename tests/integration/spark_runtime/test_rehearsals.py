"""A new version is rehearsed on a copy of the state while the old one runs; real S3 server, real Spark.

Each rehearsal is what an upgrade makes of it: the old version runs, its agent is told to take the copy, and the process
of the rehearsal starts with that. Nothing it puts out leaves, and it names what fails. Tests share the old version.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.contract.protocol import EXIT_APPLICATION, EXIT_OK, StartFrom, Storage, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalEnd, RehearsalResult, rehearsal_place
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.local_apps import await_end, order
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

COPY = "up-uid-1-1-copy"
OFTEN = "300 milliseconds"
PASSED, FAILED, INCONCLUSIVE = RehearsalResult.PASSED, RehearsalResult.FAILED, RehearsalResult.INCONCLUSIVE


def below(store: ObjectStore, place: Storage, *parts: str) -> list[str]:
    keys = store.keys(place.bucket, place.key(*parts) + "/")
    return [key.removeprefix(place.prefix + "/") for key in keys if not key.endswith("/")]


def copy_state(driver: DriverProcess, copy: str = COPY) -> None:
    """Have the state of a driver that runs copied, as an upgrade does."""
    order(driver, SnapshotOrders(take=(SnapshotOrder(copy, holders=(copy,)),)))
    # Its manifest is there a moment earlier than it is complete.
    assert await_end(driver, copy).state is SnapshotState.READY


def rehearse(start: StartDriver, place: Storage, script: str, *args: str, **fields: Any) -> DriverProcess:
    """Start the process of a rehearsal, as its pod does."""
    wanted = Rehearsal(fields.pop("batches", 3), fields.pop("timeout_seconds", 900))
    copy = fields.pop("copy", COPY)
    return start(
        fields.pop("app", "app"),
        script,
        args=args,
        storage=rehearsal_place(place, copy),
        start_from=StartFrom(place, copy, copy),
        rehearsal=wanted,
        stop_grace_seconds=30,
        **fields,
    )


@pytest.fixture(scope="module")
def copied(start_shared: StartDriver) -> DriverProcess:
    """The old version, which counts and runs on, and a copy of its state."""
    old = start_shared("app", "evolving.py", args=("same", "4 seconds"))
    old.await_batch(1)
    copy_state(old)
    return old


def next_row(driver: DriverProcess) -> int:
    """Return the first row of the input that a rehearsal gets."""
    report = driver.report()
    assert report is not None
    (copy,) = [snapshot for snapshot in report.snapshots if snapshot.id == COPY]
    return 20 * (copy.queries["main"].batch + 1)


# --- the old version, and what is left -------------------------------------------------------------------------------


def test_a_version_that_passes_leaves_the_old_one_and_the_storage_as_they_were(
    copied: DriverProcess, start_driver: StartDriver, object_store: ObjectStore
) -> None:
    place = copied.config.storage
    before, logs = copied.batch(), set(below(object_store, place, "logs"))
    new = rehearse(start_driver, place, "evolving.py", "same", OFTEN)
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    assert (end.result, new.termination.reason) == (PASSED, Reason.COMPLETED)
    assert end.committed["main"] >= 3
    assert below(object_store, place, "rehearsals") == []
    assert not copied.ended()
    copied.await_batch(before + 1)
    left = set(below(object_store, place, "logs")) - logs
    assert [key for key in left if key.endswith("-rehearsal/driver.log")]


def test_a_child_process_that_asks_for_spark_writes_nothing_and_the_queries_are_rehearsed(
    copied: DriverProcess, start_driver: StartDriver, tmp_path: Path
) -> None:
    written, place = tmp_path / "written", copied.config.storage
    new = rehearse(start_driver, place, "child_beside.py", "same", OFTEN, str(written), own_jvm=True)
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    assert "no child process starts Spark in a rehearsal" in new.output
    assert not written.exists()
    end = new.termination.rehearsal
    assert end is not None
    assert end.result is PASSED
    assert "a child process of the script was refused Spark" in new.termination.message


def test_a_query_that_code_in_the_jvm_starts_writes_nothing_and_ends_the_rehearsal(
    copied: DriverProcess, start_driver: StartDriver, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    new = rehearse(start_driver, copied.config.storage, "jvm_beside.py", str(written), batches=1000)
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    assert not list(written.glob("*.json"))
    end = new.termination.rehearsal
    assert end is not None
    assert (end.result, end.what) == (FAILED, Reason.PLAN_INCOMPATIBLE)
    assert "was started by code in the JVM" in new.termination.message


def test_what_a_killed_one_leaves_goes_with_the_copy(
    copied: DriverProcess, start_driver: StartDriver, object_store: ObjectStore
) -> None:
    place, copy = copied.config.storage, "up-uid-1-2-copy"
    copy_state(copied, copy)
    new = rehearse(start_driver, place, "evolving.py", "same", OFTEN, batches=1000, copy=copy)
    offsets = f"rehearsals/{copy}/lineages/1/main/offsets"
    wait_for("its first batch", lambda: below(object_store, place, offsets) or new.ended(), 600)
    new.kill()
    assert below(object_store, place, "rehearsals")
    orders = SnapshotOrders(dispose=(copy,))
    assert copied.command("POST", "/v1/snapshots", json.loads(to_json(orders)))[0] == 202
    wait_for("its end", lambda: not below(object_store, place, "rehearsals"), 300)
    assert not copied.ended()


# --- no output leaves ------------------------------------------------------------------------------------------------


WAYS = ("foreachBatch", "foreach", "json", "parquet", "table", "memory", "console")


@dataclasses.dataclass(frozen=True)
class Rehearsed:
    """What came of one rehearsal of a version that puts out what it reads in each way that there is."""

    end: RehearsalEnd
    said: str
    written: frozenset[str]
    """The ways of which something is in the folder that both versions got."""
    before: dict[str, bytes]
    """What the old version's file sink wrote and noted."""
    after: dict[str, bytes]


@pytest.fixture(scope="module")
def rehearsed(
    start_shared: StartDriver, object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Rehearsed:
    """Each way to put something out is a query of one application."""
    folder = tmp_path_factory.mktemp("outputs")

    def remembered() -> dict[str, bytes]:
        files = (folder / "remembered").rglob("*")
        return {str(path): path.read_bytes() for path in files if path.is_file()}

    old = start_shared("outputs", "rehearsed_outputs.py", args=("old", str(folder)))
    for query in (*WAYS, "kafka", "remembered"):
        old.await_batch(0, query)
    place = old.config.storage
    copy_state(old)
    # What is written from now on is the new version's.
    old.kill()
    before = remembered()
    assert before
    # Nine queries take their time on a busy machine.
    fields: dict[str, Any] = {"app": "outputs", "timeout_seconds": 1200}
    new = rehearse(start_shared, place, "rehearsed_outputs.py", "new", str(folder), **fields)
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    written = frozenset(path.name.partition("-")[0] for path in folder.iterdir())
    return Rehearsed(end, new.output, written, before, remembered())


@pytest.mark.parametrize("way", WAYS)
def test_no_output_leaves(way: str, rehearsed: Rehearsed) -> None:
    assert (rehearsed.end.result, rehearsed.end.committed[way] >= 3) == (PASSED, True)
    assert way not in rehearsed.written
    assert not list(Path.cwd().glob("spark-warehouse/rehearsed*"))
    assert "Batch: " not in rehearsed.said


def test_no_record_reaches_kafka(rehearsed: Rehearsed) -> None:
    # Nothing listens there: a query that wrote to it would fail.
    assert (rehearsed.end.result, rehearsed.end.committed["kafka"] >= 3) == (PASSED, True)


def test_what_a_file_sink_remembers_is_not_touched(rehearsed: Rehearsed) -> None:
    assert rehearsed.end.committed["remembered"] >= 3
    assert rehearsed.after == rehearsed.before
    assert rehearsed.written == {"remembered"}


# --- what fails is named ---------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[str, Reason]] = {
    "a state schema": ("schema", Reason.STATE_SCHEMA),
    "another operator": ("operator", Reason.PLAN_INCOMPATIBLE),
    "one source more": ("source", Reason.PLAN_INCOMPATIBLE),
    "a column that is not there": ("column", Reason.PLAN_INCOMPATIBLE),
    "an exception": ("exception", Reason.APPLICATION_FAILED),
}


ELSEWHERE = ("a state schema", "an exception", "one source more", "a column that is not there")
"""Upgrades with real pods meet the first two; the others are found as another operator is, by the plan."""


def changes() -> Iterator[Any]:
    for name, (change, what) in CHANGES.items():
        yield pytest.param(change, what, id=name, marks=pytest.mark.long if name in ELSEWHERE else ())


@pytest.mark.parametrize(("change", "what"), list(changes()))
def test_what_fails_is_named(
    change: str, what: Reason, copied: DriverProcess, start_driver: StartDriver, object_store: ObjectStore
) -> None:
    place, far = copied.config.storage, str(next_row(copied) + 40)
    new = rehearse(start_driver, place, "evolving.py", change, OFTEN, far, batches=30)
    assert new.exit_code() == EXIT_APPLICATION, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    print(f"{change}: {new.termination.exception}: {new.termination.message}")
    assert (end.result, end.what) == (FAILED, what), new.termination
    assert not copied.ended()
    assert below(object_store, place, "rehearsals") == []
    assert dataclasses.replace(new.termination, rehearsal=None).reason is Reason.APPLICATION_FAILED


@pytest.mark.long
def test_too_few_batches_in_time_say_nothing(copied: DriverProcess, start_driver: StartDriver) -> None:
    place = copied.config.storage
    new = rehearse(start_driver, place, "evolving.py", "same", OFTEN, batches=100_000, timeout_seconds=30)
    new.exit_code()
    end = new.termination.rehearsal
    assert end is not None
    assert end.result is INCONCLUSIVE, new.output[-3000:]
    assert not copied.ended()
