"""Queries with each of Spark's triggers; real S3 server, real Spark. The launches are those that the operator makes."""

import json

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, Pin, QueryReport, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalResult, rehearsal_place
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.local_apps import await_end, order
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

COPY, PIN = "up-uid-1-1-copy", "up-uid-1-1"


def query(driver: DriverProcess, name: str) -> QueryReport:
    report = driver.report()
    assert report is not None
    return next(each for each in report.queries if each.name == name)


def test_queries_that_read_what_there_is_complete_the_application(start_driver: StartDriver) -> None:
    driver = start_driver("app", "triggers.py", args=("once", "available"))
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    end = driver.termination
    assert end.reason is Reason.COMPLETED
    assert (end.batches["once"], end.batches["available"] >= 0) == (0, True)


def test_queries_without_a_trigger_and_with_one_by_time_are_ready_after_their_first_batch(
    start_driver: StartDriver,
) -> None:
    driver = start_driver("app", "triggers.py", args=("none", "time"))
    for name in ("none", "time"):
        driver.await_batch(1, name)
    report = driver.report()
    assert report is not None
    assert (report.ready, report.notices) == (True, ())


def test_a_continuous_query_is_ready_by_its_epochs_and_goes_on_with_the_next_one(start_driver: StartDriver) -> None:
    first = start_driver("app", "triggers.py", args=("continuous",))
    first.await_batch(5, "continuous")
    report = first.report()
    assert report is not None
    assert report.ready
    assert [notice.reason for notice in report.notices] == [Reason.CONTINUOUS_TRIGGER]
    seen = query(first, "continuous")
    assert (seen.continuous, seen.committed >= 5, seen.last_commit_time > 0) == (True, True, True)
    first.terminate()
    first.exit_code()
    end = first.termination
    assert (end.reason, end.boundary, end.committed == end.batches["continuous"] + 1) == (Reason.STOPPED, True, True)
    second = start_driver("app", "triggers.py", args=("continuous",), epoch=2)
    second.await_batch(end.batches["continuous"] + 1, "continuous")
    assert query(second, "continuous").committed <= query(second, "continuous").batch_id - end.batches["continuous"]


@pytest.mark.long  # the test above has its epochs, test_rollbacks.py rollbacks
def test_a_continuous_query_is_rehearsed_upgraded_and_rolled_back_by_its_epochs(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    old = start_driver("app", "triggers.py", args=("continuous",))
    old.await_batch(3, "continuous")
    order(old, SnapshotOrders(take=(SnapshotOrder(COPY, holders=(COPY,)),)))
    assert await_end(old, COPY).state is SnapshotState.READY
    place = old.config.storage
    tried = start_driver(
        "app",
        "triggers.py",
        args=("continuous",),
        storage=rehearsal_place(place, COPY),
        start_from=StartFrom(place, COPY, COPY),
        rehearsal=Rehearsal(3, 900, ("continuous",)),
        stop_grace_seconds=30,
    )
    assert tried.exit_code() == EXIT_OK, tried.output[-3000:]
    end = tried.termination.rehearsal
    assert end is not None
    assert end.result is RehearsalResult.PASSED
    old.terminate()
    old.exit_code()
    last = old.termination.batches["continuous"]
    new = start_driver("app", "triggers.py", args=("continuous",), epoch=2, pin=Pin(PIN, "v1"))
    new.await_batch(last + 3, "continuous")
    manifest = place.key(f"snapshots/{PIN}/manifest.json")
    wait_for("the pin", lambda: manifest in object_store.keys(place.bucket, place.key("snapshots") + "/"), 300, 0.2)
    new.kill()
    start_from = StartFrom(place, PIN, f"rollback-{PIN}", lineage=1, image="v1")
    back = start_driver("app", "triggers.py", args=("continuous",), epoch=3, lineage=2, start_from=start_from)
    back.await_batch(last + 2, "continuous")
    pinned = json.loads(object_store.text(place.bucket, manifest))
    assert [each["batch"] for each in pinned["queries"].values()] == [last]
