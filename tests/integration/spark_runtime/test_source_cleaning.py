"""Sources that do something about what was read: in a rehearsal they do nothing, and what a rollback misses is said.

Real S3 server, real Spark. The launches are those that the operator makes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, Notice, Pin, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalEnd, RehearsalResult, rehearsal_place
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_testing.driver_process import SOURCES, DriverProcess, ObjectStore
from tidegate_testing.local_apps import await_end, order
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

COPY, PIN = "up-uid-1-1-copy", "up-uid-1-1"


def put(folder: Path, *names: str) -> None:
    """Put files with a row each where the query looks for them, each whole at once."""
    (folder / "in").mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text('{"value": 1}\n')
        (folder / name).rename(folder / "in" / f"{name}.json")


def waiting(folder: Path) -> set[str]:
    return {path.stem for path in (folder / "in").glob("*.json")}


def notices(driver: DriverProcess) -> dict[str, Notice]:
    report = driver.report()
    assert report is not None
    return {notice.reason: notice for notice in report.notices}


def await_world(driver: DriverProcess, what: str, is_so: Callable[[], bool]) -> None:
    def probe() -> bool:
        driver.must_run()
        return is_so()

    wait_for(what, probe, 600, 0.2)


def copy_and_kill(old: DriverProcess) -> None:
    """Have the state of a driver copied, as an upgrade does; what is done from then on is the rehearsal's."""
    order(old, SnapshotOrders(take=(SnapshotOrder(COPY, holders=(COPY,)),)))
    assert await_end(old, COPY).state is SnapshotState.READY
    old.kill()


def of_a_rehearsal(old: DriverProcess) -> dict[str, Any]:
    """Return what a rehearsal on this driver's copy is told, beside what each driver is."""
    place = old.config.storage
    return {
        "storage": rehearsal_place(place, COPY),
        "start_from": StartFrom(place, COPY, COPY),
        "rehearsal": Rehearsal(3, 900),
        "stop_grace_seconds": 30,
    }


def passed(new: DriverProcess) -> RehearsalEnd:
    assert new.exit_code() == EXIT_OK, new.output[-3000:]
    end = new.termination.rehearsal
    assert end is not None
    assert end.result is RehearsalResult.PASSED
    return end


def test_a_rehearsal_cleans_nothing_up_and_tells_no_source_what_was_committed(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    put(tmp_path, "a", "b")
    old = start_driver("app", "cleaning.py", args=(str(tmp_path),))
    await_world(old, "the first file to be gone", lambda: waiting(tmp_path) == {"b"})
    await_world(old, "an acknowledgement", (tmp_path / "acknowledged").exists)
    copy_and_kill(old)
    acknowledged = (tmp_path / "acknowledged").read_text()
    put(tmp_path, "c", "d", "e")
    new = start_driver("app", "cleaning.py", args=(str(tmp_path),), **of_a_rehearsal(old))
    end = passed(new)
    assert (end.committed["files"], end.committed["queue"] >= 3) == (3, True)
    assert waiting(tmp_path) == {"b", "c", "d", "e"}
    assert (tmp_path / "acknowledged").read_text() == acknowledged
    # The old version may delete what is listed here before it is read.
    assert "files that are gone are left out: true" in new.output


PACKAGE = """
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition


class Reader(DataSourceStreamReader):
    def __init__(self, folder):
        self.folder, self.at = folder, 0

    def initialOffset(self):
        return {"at": 0}

    def latestOffset(self, *limits):
        self.at = max(self.at, *(start["at"] for start in limits[:1]), 0) + 1
        return {"at": self.at}

    def partitions(self, start, end):
        return [InputPartition(end["at"])]

    def read(self, partition):
        return iter([(partition.value,)])

    def commit(self, end):
        (Path(self.folder) / "acknowledged").write_text(str(end["at"]))


class DefaultSource(DataSource):
    @classmethod
    def name(cls):
        return "OrderQueue"

    def schema(self):
        return "value int"

    def streamReader(self, schema):
        return Reader(self.options["folder"])
"""
"""Of a package that no script imports: Spark looks for such by itself."""


@pytest.mark.long  # how sources are kept from commits is tested above; this is about how Spark finds one
def test_a_source_that_spark_finds_by_itself_is_not_told_in_a_rehearsal_either(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "pyspark_orders.py").write_text(PACKAGE)
    # Its path is that of the JVM's environment, so that none is lent.
    fields: dict[str, Any] = {"variables": {"PYTHONPATH": f"{SOURCES}:{packages}"}, "own_jvm": True}
    old = start_driver("app", "found_source.py", args=(str(tmp_path),), **fields)
    await_world(old, "an acknowledgement", (tmp_path / "acknowledged").exists)
    copy_and_kill(old)
    acknowledged = (tmp_path / "acknowledged").read_text()
    new = start_driver("app", "found_source.py", args=(str(tmp_path),), **fields, **of_a_rehearsal(old))
    assert passed(new).committed["queue"] >= 3
    assert (tmp_path / "acknowledged").read_text() == acknowledged


def test_what_a_rollback_cannot_read_again_is_named(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    put(tmp_path, "a")
    old = start_driver("app", "cleaning.py", args=(str(tmp_path),))
    old.await_batch(0, "files")
    assert "cleanSource 'delete'" in notices(old)[Reason.SOURCE_FILES_CLEANED].message
    old.terminate()
    old.exit_code()
    place = old.config.storage
    new = start_driver("app", "cleaning.py", args=(str(tmp_path),), epoch=2, pin=Pin(PIN, "v1"))
    put(tmp_path, "b", "c")
    new.await_batch(2, "files")
    put(tmp_path, "d")
    await_world(new, "all but the newest to be gone", lambda: waiting(tmp_path) == {"d"})
    manifest = place.key(f"snapshots/{PIN}/manifest.json")
    await_world(new, "the pin", lambda: manifest in object_store.keys(place.bucket, place.key("snapshots") + "/"))
    new.kill()
    start_from = StartFrom(place, PIN, f"rollback-{PIN}", lineage=1, image="v1")
    back = start_driver("app", "cleaning.py", args=(str(tmp_path),), epoch=3, lineage=2, start_from=start_from)
    back.await_batch(1, "files")
    missing = notices(back)[Reason.SOURCE_FILES_MISSING]
    assert missing.warning
    assert "2 files that the version read before its rollback are gone" in missing.message
    assert "/in/b.json" in missing.message
    assert "/in/c.json" in missing.message
