"""Snapshots that a driver's agent and a pod take, and what starts from them; real S3 server, real Spark."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

from tidegate_spark.contract.protocol import (
    EXIT_DEPENDENCY,
    EXIT_OK,
    EXIT_STOPPED,
    DriverConfig,
    StartFrom,
    Storage,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    LARGEST_ORDERS,
    SNAPSHOT_COMMAND,
    AdoptOrder,
    ReleaseOrder,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReport,
    SnapshotState,
    VerifyOrder,
)
from tidegate_testing.driver_process import DriverProcess, ObjectStore, driver_config
from tidegate_testing.store_front import Request, Rule, StoreFront
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver, run_pod

Counts = dict[str, int]


@pytest.fixture
def front(object_store: ObjectStore) -> Iterator[StoreFront]:
    """What the driver takes for the S3 server."""
    with StoreFront(object_store.endpoint) as store_front:
        yield store_front


def order(driver: DriverProcess, orders: SnapshotOrders) -> tuple[int, str]:
    return driver.command("POST", SNAPSHOT_COMMAND, json.loads(to_json(orders)))


def take(driver: DriverProcess, name: str) -> None:
    answer = order(driver, SnapshotOrders(take=(SnapshotOrder(name, image="shop:1"),)))
    assert answer == (202, "{}")


def report_of(driver: DriverProcess, name: str) -> SnapshotReport | None:
    report = driver.report()
    return next((each for each in report.snapshots if each.id == name), None) if report else None


def await_state(driver: DriverProcess, name: str, state: SnapshotState) -> SnapshotReport:
    def probe() -> SnapshotReport | None:
        report = report_of(driver, name)
        assert report is not None
        assert report.state is state, report
        return report

    found = wait_for(f"snapshot {name} {state.value}", probe, 300, 0.2)
    assert found is not None
    return found


def await_metric(driver: DriverProcess, line: str) -> None:
    """Wait until the metrics have this line: they are told of a snapshot after its report."""
    wait_for(line, lambda: line in driver.status("/metrics")[1], 120, 0.2)


def reported(driver: DriverProcess) -> dict[int, Counts]:
    """Return what the script said of each batch."""
    # The last line may be half written.
    lines = [line.partition(" ")[2] for line in driver.output.split("\n")[:-1] if line.startswith("told ")]
    return dict(map(json.loads, lines))


def right(batch: int) -> Counts:
    """Return what a batch has to come to."""
    return {str(key): 4 * (batch + 1) for key in range(5)}


def below(store: ObjectStore, place: Storage, *parts: str) -> list[str]:
    keys = store.keys(place.bucket, place.key(*parts) + "/")
    return [key.removeprefix(place.prefix + "/") for key in keys if not key.endswith("/")]


def test_a_query_has_one_name_in_the_report_and_in_its_snapshots(start_driver: StartDriver) -> None:
    name = "dedup größe"
    driver = start_driver("named", "grouped_twice.py", args=("shop,item", "300 milliseconds", name))
    driver.await_batch(1, name)
    take(driver, "a")
    assert set(await_state(driver, "a", SnapshotState.READY).queries) == {name}


def test_a_snapshot_of_a_running_query_is_where_another_application_goes_on(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    origin = start_driver("origin", "reporting.py")
    origin.await_batch(3)
    take(origin, "a")
    report = await_state(origin, "a", SnapshotState.READY)
    batch, place = report.queries["main"].batch, origin.config.storage
    assert batch >= 3
    assert json.loads(report.queries["main"].offsets.splitlines()[0])["offset"]
    assert (report.lineage, report.manifest) == (1, f"{place.uri}/snapshots/a/manifest.json")
    await_metric(origin, 'tidegate_snapshot_seconds_count{app="origin",epoch="1",namespace="tests"} 1.0')
    await_metric(
        origin, f'tidegate_snapshot_copied_bytes_total{{app="origin",epoch="1",namespace="tests"}} {report.bytes}'
    )

    start_from = StartFrom(place, "a", holder="fork-uid-of-variant")
    fork = start_driver("variant", "reporting.py", start_from=start_from, state_partitions=3)
    fork.await_batch(batch + 2)
    assert min(reported(fork)) == batch + 1
    assert {number: counts for number, counts in reported(fork).items() if counts != right(number)} == {}
    seen = fork.report()
    assert seen is not None
    notices = {notice.reason: notice.message for notice in seen.notices}
    assert f"'main' after batch {batch}" in notices["StartedFromSnapshot"]
    assert "keeps the 2 partitions" in notices["StatePartitionsKept"]
    assert [query.state_partitions for query in seen.queries] == [2]

    # A copy of its own: what it began with may go, and its next process goes on from its own batches.
    assert order(origin, SnapshotOrders(dispose=("a",)))[0] == 202
    await_state(origin, "a", SnapshotState.DISPOSED)
    assert below(object_store, place, "snapshots") == ["snapshots/catalog.json"]
    assert below(object_store, place, "objects") == []
    fork.kill()
    before = max(reported(fork))
    fork.start()
    fork.await_batch(before + 2)
    assert min(reported(fork)) >= before
    assert {number: counts for number, counts in reported(fork).items() if counts != right(number)} == {}

    # The application's pod takes one after its driver has ended, and disposes of it.
    fork.terminate()
    fork.exit_code()
    last = fork.termination.batches["main"]
    code, reports = run_pod(fork.config, SnapshotOrders(take=(SnapshotOrder("b"),)), tmp_path / "pod-1")
    assert (code, reports["b"].state, reports["b"].queries["main"].batch) == (EXIT_OK, SnapshotState.READY, last)
    assert reports["b"].spark_version == pyspark.__version__

    look_after(fork.config, object_store, last, tmp_path)
    code, reports = run_pod(fork.config, SnapshotOrders(dispose=("b",)), tmp_path / "pod-2")
    assert (code, reports["b"].state) == (EXIT_OK, SnapshotState.DISPOSED)
    assert below(object_store, fork.config.storage, "snapshots") == ["snapshots/catalog.json"]


def look_after(config: DriverConfig, object_store: ObjectStore, last: int, folder: Path) -> None:
    """Snapshot b is read back, adopted, let go and found damaged, by a pod each time."""
    place = config.storage
    code, reports = run_pod(config, SnapshotOrders(verify=(VerifyOrder("look", "b"),)), folder / "pod-3")
    assert (code, reports["look"].state) == (EXIT_OK, SnapshotState.VERIFIED), reports
    code, reports = run_pod(config, SnapshotOrders(adopt=(AdoptOrder("mine", "b", "import-1"),)), folder / "pod-4")
    assert (code, reports["mine"].state, reports["mine"].queries["main"].batch) == (EXIT_OK, SnapshotState.READY, last)
    code, reports = run_pod(config, SnapshotOrders(dispose=("b",)), folder / "pod-5")
    assert (code, reports["b"].state, "import-1" in reports["b"].message) == (EXIT_OK, SnapshotState.HELD, True)
    releasing = SnapshotOrders(release=(ReleaseOrder("b", "import-1"),))
    code, reports = run_pod(config, releasing, folder / "pod-6")
    assert (code, reports["b"].state) == (EXIT_OK, SnapshotState.RELEASED)

    # What was lost is found.
    lost = next(key for key in below(object_store, place, "snapshots", "b") if "/state/" in key)
    kept = object_store.client.get_object(Bucket=place.bucket, Key=place.key(lost))["Body"].read()
    object_store.client.put_object(Bucket=place.bucket, Key=place.key(lost), Body=b"?" * len(kept))
    code, reports = run_pod(config, SnapshotOrders(verify=(VerifyOrder("look", "b"),)), folder / "pod-7")
    assert (code, reports["look"].reason) == (EXIT_OK, Reason.SNAPSHOT_DAMAGED)
    assert lost in reports["look"].message


@pytest.mark.long
def test_a_driver_that_is_killed_while_it_takes_a_snapshot_is_followed_by_one_that_finishes_it(
    front: StoreFront, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    def is_manifest(request: Request) -> bool:
        return request.method == "PUT" and request.key.endswith("manifest.json")

    behind = replace(place, endpoint=front.endpoint)
    driver = start_driver("app", "reporting.py", storage=behind)
    driver.await_batch(2)
    front.add(Rule(is_manifest, refuse=True))
    take(driver, "a")
    report = await_state(driver, "a", SnapshotState.WAITING)
    wait_for("the refusal", lambda: (report_of(driver, "a") or report).reason is Reason.STORAGE_UNAVAILABLE, 300)
    driver.kill()
    copied = set(below(object_store, place, "objects"))
    assert below(object_store, place, "snapshots", "a")
    front.clear()
    driver.start()
    driver.await_batch(0)
    take(driver, "a")
    ready = await_state(driver, "a", SnapshotState.READY)
    assert set(below(object_store, place, "objects")) >= copied
    assert ready.queries["main"].batch >= 2


@pytest.mark.long
def test_snapshots_become_ready_though_spark_keeps_two_batches_and_cleans_up_all_the_time(
    start_driver: StartDriver,
) -> None:
    stores = "spark.sql.streaming.stateStore"
    cleaning = {f"{stores}.maintenanceInterval": "100ms", "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0"}
    driver = start_driver("app", "counting.py", min_batches_to_retain=2, spark_conf=cleaning)
    driver.await_batch(5)
    names = [f"s{number}" for number in range(10)]
    for name in names:
        take(driver, name)
    reports = [await_state(driver, name, SnapshotState.READY) for name in names]
    assert [report.parent for report in reports] == ["", *names[:-1]]


def test_orders_that_cannot_be_meant_are_refused_and_those_before_the_start_wait(start_process: StartDriver) -> None:
    driver = start_process("early", "reporting.py", secret="wrong")
    wait_for("the agent", driver.report, 180, 0.1)
    assert order(driver, SnapshotOrders(take=(SnapshotOrder("No/Id"),)))[0] == 400
    assert driver.command("POST", SNAPSHOT_COMMAND, {"take": [{}]})[0] == 400
    assert driver.command("POST", SNAPSHOT_COMMAND, {}, token="wrong")[0] == 401
    assert driver.command("POST", SNAPSHOT_COMMAND, {"dispose": ["a" * 60] * (LARGEST_ORDERS // 60)})[0] == 413
    assert order(driver, SnapshotOrders(dispose=tuple(f"snapshot-{number}" for number in range(500))))[0] == 202
    take(driver, "a")
    assert await_state(driver, "a", SnapshotState.WAITING).message


def test_a_lineage_that_cannot_start_from_its_snapshot_does_not_begin(
    start_process: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    start_from = StartFrom(replace(place, uri=place.uri + "-origin"), "never", holder="fork-uid-of-app")
    driver = start_process("app", "reporting.py", start_from=start_from)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    ended = driver.termination
    assert ended.reason is Reason.SNAPSHOT_UNUSABLE
    assert "there is no snapshot never" in ended.message
    assert below(object_store, place, "lineages") == []


def test_a_pod_that_does_not_reach_the_storage_asks_to_be_started_again(place: Storage, tmp_path: Path) -> None:
    config = driver_config("app", "local:///main.py", place)
    code, reports = run_pod(config, SnapshotOrders(take=(SnapshotOrder("a"),)), tmp_path / "pod", secret="wrong")
    assert (code, reports["a"].state) == (EXIT_DEPENDENCY, SnapshotState.WAITING)
    assert reports["a"].reason is Reason.STORAGE_UNAVAILABLE
    assert "credentials" in reports["a"].message


def test_a_pod_takes_nothing_from_a_storage_that_is_anothers_by_now(
    place: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    claim = {"uid": "another", "namespace": "tests", "app": "app", "epoch": 1, "lineage": 1}
    object_store.client.put_object(Bucket=place.bucket, Key=place.key("app.json"), Body=json.dumps(claim).encode())
    config = driver_config("app", "local:///main.py", place)
    orders = SnapshotOrders(take=(SnapshotOrder("a"),), dispose=("b",))
    code, reports = run_pod(config, orders, tmp_path / "pod")
    assert (code, reports["a"].state, reports["b"].state) == (EXIT_OK, SnapshotState.FAILED, SnapshotState.DISPOSED)
    assert "another application" in reports["a"].message


def test_a_query_that_writes_its_progress_later_has_snapshots_and_no_warning_ends_anything(
    start_driver: StartDriver,
) -> None:
    driver = start_driver("strict", "strict_warnings.py")
    driver.await_batch(2, "counted")
    driver.await_batch(5, "later")
    take(driver, "a")
    # Of the later one it is the last batch whose commit is written, as a restart would have it.
    assert await_state(driver, "a", SnapshotState.READY).queries.keys() == {"counted", "later"}
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED, driver.output[-3000:]
    assert "Warning: " not in driver.output
    assert driver.termination.reason is Reason.STOPPED
