"""One attack: an application whose state Spark cleans up at once, snapshots one after the other, and then the account.

Starts an S3 server, drivers with real Spark in local mode, and a Spark of its own that reads the state back.
"""

import contextlib
import dataclasses
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from tests.attack import oracle
from tests.attack.report import Result, Taken, spread
from tidegate_spark.contract.protocol import StartFrom
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_spark.exports.checkpoint_copy import bones_of, fetch, stores_of
from tidegate_spark.snapshots import manifest
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.manifest import Manifest
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.local_apps import LocalApps, await_end, order
from tidegate_testing.streaming_queries import spark_here
from tidegate_testing.waiting import wait_for

SCRIPT = Path(__file__).parent / "scripts" / "attacked.py"
APP, QUERY = "attacked", "main"
PARTITIONS = 2
STORES = "spark.sql.streaming.stateStore"
PROVIDER = f"{STORES}.providerClass"
CHANGELOG = {f"{STORES}.rocksdb.changelogCheckpointing.enabled": "true"}
HDFS = {PROVIDER: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"}
LAYOUTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "rocksdb": {},
        "rocksdb-changelog": CHANGELOG,
        "hdfs": {**HDFS, f"{STORES}.checkpointFormatVersion": "1"},
    }
)
"""What an application sets to have its state kept so; the first is what it has without."""

FIRST_BATCHES_SECONDS = 600.0
RESUME_SECONDS = 300.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How a run is to be."""

    snapshots: int
    resume: int
    rows: int = 100
    """In each batch."""
    keys: int = 500
    layout: str = "rocksdb"
    retained: int = 2
    """Batches that Spark keeps."""
    maintenance: str = "500ms"
    seconds: float = 120.0
    """A snapshot that is not ready by then is not."""


def run(settings: Settings, say: Say) -> Result:
    """Take the snapshots and account for each.

    Raises:
        AssertionError: the application did not start, or what is needed for the account could not be had.
    """
    began = time.monotonic()
    with LocalApps() as apps:
        taken, batches, problems = _take_all(apps, settings, say)
        taken = [_with_fate(apps, each) for each in taken]
        taken = _compared(apps, settings, taken, say)
        taken = _resumed(apps, settings, taken, say)
    seconds = time.monotonic() - began
    return Result(tuple(taken), batches, seconds, settings.snapshots, settings.resume, tuple(problems))


# --- the attack ------------------------------------------------------------------------------------------------------


def _take_all(apps: LocalApps, settings: Settings, say: Say) -> tuple[list[Taken], int, list[str]]:
    """Return the snapshots that were ordered, how many batches were committed meanwhile, and what went wrong."""
    conf = {
        f"{STORES}.maintenanceInterval": settings.maintenance,
        # Else Spark leaves what is not needed until there is enough of it.
        "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0",
        **LAYOUTS[settings.layout],
    }
    args = (str(settings.rows), str(settings.keys), "quiet")
    driver = apps.start(
        APP, SCRIPT, args, spark_conf=conf, min_batches_to_retain=settings.retained, state_partitions=PARTITIONS
    )
    wait_for(
        "the first batches", lambda: driver.ended() or driver.batch() >= 2 * settings.retained, FIRST_BATCHES_SECONDS
    )
    assert not driver.ended(), driver.output[-2000:]
    first = driver.batch()
    say(f"batches are committed; {settings.snapshots} snapshots begin")
    taken: list[Taken] = []
    for number in range(settings.snapshots):
        if driver.ended():
            break
        taken.append(_take(driver, f"s{number}", settings))
        if not taken[-1].ready or (number + 1) % 20 == 0:
            say(f"{number + 1} ordered, {sum(each.ready for each in taken)} ready {taken[-1].message}")
    last = driver.batch()
    _await_cleaning(apps, taken)
    problems = [f"the driver ended: {driver.output[-2000:]}"] if driver.ended() else []
    driver.kill()
    return taken, last - first, problems


def _take(driver: DriverProcess, name: str, settings: Settings) -> Taken:
    began = time.monotonic()
    try:
        order(driver, SnapshotOrders(take=(SnapshotOrder(name),)))
        report = await_end(driver, name, timeout=settings.seconds)
    except (AssertionError, OSError) as late:
        return Taken(name, False, message=str(late)[:500])
    if report.state is not SnapshotState.READY:
        return Taken(name, False, message=report.message)
    return Taken(name, True, report.queries[QUERY].batch, time.monotonic() - began)


def _await_cleaning(apps: LocalApps, taken: Sequence[Taken]) -> None:
    """Give Spark the time to clean up behind the last snapshot; it may not."""
    with contextlib.suppress(AssertionError):
        wait_for("Spark to clean up", lambda: all(_is_cleaned(apps, each) for each in taken[-1:]), 60)


def _with_fate(apps: LocalApps, taken: Taken) -> Taken:
    return dataclasses.replace(taken, cleaned=taken.ready and _is_cleaned(apps, taken))


def _is_cleaned(apps: LocalApps, taken: Taken) -> bool:
    repository = apps.repository(APP)
    return repository.store.head(repository.lineage_key(1, QUERY, "offsets", str(taken.batch))) is None


# --- the account -----------------------------------------------------------------------------------------------------


def _compared(apps: LocalApps, settings: Settings, all_taken: Sequence[Taken], say: Say) -> list[Taken]:
    """Compare what each ready snapshot holds with what its batch has to come to."""
    say("the driver is gone; each snapshot's state is read and compared with the input's")
    expected = oracle.digests(settings.rows, settings.keys, {taken.batch for taken in all_taken if taken.ready})
    compared = []
    with _reading(apps, settings) as read:
        for number, taken in enumerate(all_taken, 1):
            compared.append(_judged(taken, read, expected) if taken.ready else taken)
            if number % 20 == 0:
                say(f"{number} compared, {sum(each.equal for each in compared)} equal")
    return compared


def _judged(taken: Taken, read: Callable[[str], tuple[int, list[oracle.Row]]], expected: Mapping[int, str]) -> Taken:
    try:
        offset, state = read(taken.id)
    except Exception as error:  # whatever the state reader raises: this one is not as it should be
        return dataclasses.replace(taken, difference=f"{type(error).__name__}: {str(error)[:500]}")
    rows_read = sum(count for _, count, _ in state)
    equal = oracle.digest(state) == expected[taken.batch] and rows_read == offset
    difference = "" if equal else f"{len(state)} keys, {rows_read} rows, source at {offset}"
    return dataclasses.replace(taken, equal=equal, difference=difference)


@contextmanager
def _reading(apps: LocalApps, settings: Settings) -> Iterator[Callable[[str], tuple[int, list[oracle.Row]]]]:
    """Yield what returns a snapshot's source offset and state, read by Spark from its files alone."""
    repository = apps.repository(APP)
    provider = {PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"}
    conf = {**provider, f"{STORES}.checkpointFormatVersion": "2", **LAYOUTS[settings.layout]}
    with spark_here(apps.folder / "reader", conf) as spark:
        # Spark's state stores report to an object that comes with the streams of a session.
        spark.streams  # noqa: B018 - it is made by being asked for

        def read(name: str) -> tuple[int, list[oracle.Row]]:
            made, folder = manifest.read(repository, name, repository.read()), apps.folder / "read" / name
            fetch(repository, [*bones_of(made, QUERY), *stores_of(made, QUERY, 0)], folder, Copiers(4))
            state = _state(spark, folder, made.queries[QUERY].batch)
            shutil.rmtree(folder)
            return _offset(made), state

        yield read


def _offset(made: Manifest) -> int:
    """Return how many rows the source had given by the snapshot's batch, as Spark noted it."""
    return int(json.loads(made.queries[QUERY].offsets.split("\n")[2])["offset"])


def _state(spark: SparkSession, checkpoint: Path, batch: int) -> list[oracle.Row]:
    rows = spark.read.format("statestore").option("batchId", batch).load(str(checkpoint)).collect()
    return [(row["key"][0], row["value"][0], row["value"][1]) for row in rows]


# --- what starts with it ---------------------------------------------------------------------------------------------


def _resumed(apps: LocalApps, settings: Settings, all_taken: Sequence[Taken], say: Say) -> list[Taken]:
    """Begin an application with some of the snapshots, and compare its next batches, until each key had one."""
    chosen = {taken.id for taken in spread([taken for taken in all_taken if taken.ready], settings.resume)}
    say(f"{len(chosen)} of them are resumed")
    resumed = []
    for taken in all_taken:
        right = _goes_on(apps, settings, taken) if taken.id in chosen else None
        resumed.append(dataclasses.replace(taken, resumed=right))
        if right is not None:
            say(f"{taken.id} resumed at batch {taken.batch + 1}: {'right' if right else 'wrong'}")
    return resumed


def _goes_on(apps: LocalApps, settings: Settings, taken: Taken) -> bool:
    app = f"from-{taken.id}"
    start_from = StartFrom(apps.place(APP), taken.id, holder=f"fork-{app}")
    args = (str(settings.rows), str(settings.keys), "tell")
    conf = dict(LAYOUTS[settings.layout])
    fields: dict[str, Any] = {"start_from": start_from, "state_partitions": PARTITIONS, "spark_conf": conf}
    driver = apps.start(app, SCRIPT, args, briefly=True, **fields)
    last = taken.batch + math.ceil(settings.keys / settings.rows)
    expected = oracle.changes(settings.rows, settings.keys, taken.batch + 1, last)
    try:
        wait_for(
            f"batch {last} of {app}", lambda: driver.ended() or last in reported(driver.output), RESUME_SECONDS, 0.2
        )
        found = reported(driver.output)
    finally:
        driver.kill()
    return min(found, default=-1) == taken.batch + 1 and {batch: found.get(batch) for batch in expected} == expected


def reported(output: str) -> dict[int, list[oracle.Row]]:
    """Return what the script said of each batch; pure."""
    # The last line may be half written.
    lines = [line.partition(" ")[2] for line in output.split("\n")[:-1] if line.startswith("told ")]
    return {batch: [(key, count, last) for key, count, last in rows] for batch, rows in map(json.loads, lines)}
