"""Queries that Spark cannot continue start empty, and keep nothing else from going on; real S3 server, real Spark.

The launches are those that the operator makes.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, Pin, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalResult, rehearsal_place
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.line_server import serving_lines
from tidegate_testing.local_apps import await_end, order
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

COPY, PIN = "up-uid-1-1-copy", "up-uid-1-1"


@pytest.fixture
def lines() -> Iterator[int]:
    """The port of a server of lines."""
    with serving_lines(lambda number: f"line {number}") as port:
        yield port


def announced(driver: DriverProcess) -> list[str]:
    report = driver.report()
    assert report is not None
    return [notice.message for notice in report.notices if notice.reason == Reason.STARTS_EMPTY]


def least(driver: DriverProcess) -> list[str]:
    """Return what the script found in memory at each look."""
    found = [line.rpartition(": ")[2] for line in driver.output.split("\n")[:-1] if "least in memory" in line]
    return [value for value in found if value != "None"]


def run(start: StartDriver, port: int = 0, *, alone: bool = False, **fields: Any) -> DriverProcess:
    """Start a driver and wait for batches of each query that it has; ``alone``: without the one that goes on."""
    driver = start("app", "forgetting.py", args=(str(port), *(["alone"] if alone else [])), **fields)
    for query in ("newest", *([] if alone else ["lasting"]), *(["lines"] if port else [])):
        driver.await_batch(2, query)
    wait_for("a look at the rows in memory", lambda: driver.ended() or bool(least(driver)), 600, 0.2)
    return driver


def test_a_query_that_spark_cannot_continue_starts_empty_each_time_and_the_others_go_on(
    start_driver: StartDriver, lines: int
) -> None:
    first = run(start_driver, lines)
    said = announced(first)
    assert ["the source 'socket'" in said[0], "the sink 'memory'" in said[1], len(said)] == [True, True, 2]
    first.terminate()
    first.exit_code()
    last = first.termination.batches
    second = run(start_driver, lines, epoch=2)
    second.await_batch(last["lasting"] + 1, "lasting")
    assert announced(second) == said
    assert set(least(second)) == {"0"}
    second.terminate()
    second.exit_code()
    assert second.termination.reason is Reason.STOPPED


@pytest.mark.long  # the test below has the upgrade and the rollback, test_rehearsals.py rehearsals
def test_an_upgrade_a_rehearsal_and_a_rollback_blame_no_version_for_it(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    old = run(start_driver)
    order(old, SnapshotOrders(take=(SnapshotOrder(COPY, holders=(COPY,)),)))
    copied = await_end(old, COPY)
    assert (copied.state, set(copied.queries)) == (SnapshotState.READY, {"lasting"})
    place = old.config.storage
    tried = start_driver(
        "app",
        "forgetting.py",
        args=("0",),
        storage=rehearsal_place(place, COPY),
        start_from=StartFrom(place, COPY, COPY),
        rehearsal=Rehearsal(3, 900, ("lasting", "newest")),
        stop_grace_seconds=30,
    )
    assert tried.exit_code() == EXIT_OK, tried.output[-3000:]
    end = tried.termination.rehearsal
    assert end is not None
    assert (end.result, end.committed["newest"] >= 3) == (RehearsalResult.PASSED, True)
    old.terminate()
    old.exit_code()

    new = run(start_driver, epoch=2, pin=Pin(PIN, "v1"))
    manifest = place.key(f"snapshots/{PIN}/manifest.json")
    wait_for("the pin", lambda: manifest in object_store.keys(place.bucket, place.key("snapshots") + "/"), 300, 0.2)
    new.kill()
    start_from = StartFrom(place, PIN, f"rollback-{PIN}", lineage=1, image="v1")
    last = old.termination.batches
    back = run(start_driver, epoch=3, lineage=2, start_from=start_from)
    back.await_batch(last["lasting"] + 1, "lasting")
    assert set(least(back)) == {"0"}


def test_an_application_of_nothing_else_is_upgraded_and_rolled_back(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    old = run(start_driver, alone=True)
    old.terminate()
    old.exit_code()
    place = old.config.storage
    new = run(start_driver, alone=True, epoch=2, pin=Pin(PIN, "v1"))
    manifest = place.key(f"snapshots/{PIN}/manifest.json")
    wait_for("the pin", lambda: manifest in object_store.keys(place.bucket, place.key("snapshots") + "/"), 300, 0.2)
    new.kill()
    start_from = StartFrom(place, PIN, f"rollback-{PIN}", lineage=1, image="v1")
    back = run(start_driver, alone=True, epoch=3, lineage=2, start_from=start_from)
    assert set(least(back)) == {"0"}
