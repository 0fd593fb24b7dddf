"""The operator's figures about StreamSnapshots: what is counted, and goes with the last one."""

import datetime

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot
from tidegate.snapshots.metrics import SnapshotMetrics
from tidegate.snapshots.rules.status import human_size
from tidegate_testing.snapshot_observations import ready_snapshot

APP = ("shop", "orders")


def complete(name: str, minute: int, size: int) -> StreamSnapshot:
    of = ready_snapshot()
    time = datetime.datetime(2026, 3, 1, 12, minute, tzinfo=datetime.UTC)
    status = msgspec.structs.replace(of.status, ready_time=time, bytes=size, size=human_size(size))
    return msgspec.structs.replace(of, metadata=msgspec.structs.replace(of.metadata, name=name), status=status)


def shown(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def test_exports_are_counted_by_result_until_the_last_snapshot_goes() -> None:
    registry = CollectorRegistry()
    metrics, snapshot = SnapshotMetrics(registry), ready_snapshot()
    metrics.show(msgspec.structs.replace(snapshot), snapshot)
    for complete in (True, True, False):
        metrics.count_exported(APP, complete)
    text = shown(registry)
    assert 'tidegate_snapshots_exported_total{app="orders",namespace="shop",result="complete"} 2.0' in text
    assert 'tidegate_snapshots_exported_total{app="orders",namespace="shop",result="failed"} 1.0' in text
    metrics.forget(snapshot.key)
    assert "tidegate_snapshots_exported_total{" not in shown(registry)


def test_what_pods_took_is_told_until_the_last_snapshot_goes() -> None:
    registry = CollectorRegistry()
    metrics, snapshot = SnapshotMetrics(registry), ready_snapshot()
    metrics.show(msgspec.structs.replace(snapshot), snapshot)
    metrics.count_taken_by_pod(APP, 40.0, copied=512, shared=1536)
    text = shown(registry)
    of_app = '{app="orders",namespace="shop"}'
    assert f"tidegate_snapshot_pod_seconds_count{of_app} 1.0" in text
    assert f"tidegate_snapshot_pod_seconds_sum{of_app} 40.0" in text
    assert f"tidegate_snapshot_pod_copied_bytes_total{of_app} 512.0" in text
    assert f"tidegate_snapshot_pod_shared_bytes_total{of_app} 1536.0" in text
    # What is told of by a program can be anything, and a counter falls never.
    metrics.count_taken_by_pod(APP, 0.0, copied=-5, shared=-5)
    assert f"tidegate_snapshot_pod_copied_bytes_total{of_app} 512.0" in shown(registry)
    metrics.forget(snapshot.key)
    assert "tidegate_snapshot_pod_seconds_count{" not in shown(registry)
    assert "tidegate_snapshot_pod_copied_bytes_total{" not in shown(registry)
    assert "tidegate_snapshot_pod_shared_bytes_total{" not in shown(registry)


def test_the_size_of_the_newest_is_told_whatever_is_larger() -> None:
    registry, of_app = CollectorRegistry(), '{app="orders",namespace="shop"}'
    metrics, first, second = SnapshotMetrics(registry), complete("first", 1, 4096), complete("second", 2, 1024)
    for each in (second, first):
        metrics.show(each, each)
    assert f"tidegate_snapshots_newest_bytes{of_app} 1024.0" in shown(registry)
    metrics.forget(second.key)
    assert f"tidegate_snapshots_newest_bytes{of_app} 4096.0" in shown(registry)
    metrics.forget(first.key)
    assert "tidegate_snapshots_newest_bytes{" not in shown(registry)


def without_size(snapshot: StreamSnapshot, size: str = "") -> StreamSnapshot:
    """Return it with a status that was lost in part, or edited."""
    return msgspec.structs.replace(snapshot, status=msgspec.structs.replace(snapshot.status, bytes=0, size=size))


def test_a_newest_one_whose_status_says_no_size_has_no_value_and_the_size_of_no_earlier_one() -> None:
    registry, of_app = CollectorRegistry(), '{app="orders",namespace="shop"}'
    metrics, first, second = SnapshotMetrics(registry), complete("first", 1, 4096), complete("second", 2, 1024)
    for each in (first, without_size(second)):
        metrics.show(each, each)
    assert "tidegate_snapshots_newest_bytes{" not in shown(registry)
    assert f"tidegate_snapshots_newest_timestamp_seconds{of_app}" in shown(registry)
    metrics.show(second, second)
    assert f"tidegate_snapshots_newest_bytes{of_app} 1024.0" in shown(registry)
    metrics.show(second, without_size(second, second.status.size))
    assert "tidegate_snapshots_newest_bytes{" not in shown(registry)
    metrics.forget(second.key)
    assert f"tidegate_snapshots_newest_bytes{of_app} 4096.0" in shown(registry)


def test_an_empty_one_has_a_size_of_0() -> None:
    registry, snapshot = CollectorRegistry(), complete("nightly", 1, 0)
    SnapshotMetrics(registry).show(snapshot, snapshot)
    assert 'tidegate_snapshots_newest_bytes{app="orders",namespace="shop"} 0.0' in shown(registry)


def test_a_damaged_one_is_not_the_newest_until_it_is_found_whole_again() -> None:
    registry, of_app = CollectorRegistry(), '{app="orders",namespace="shop"}'
    metrics, first, second = SnapshotMetrics(registry), complete("first", 1, 4096), complete("second", 2, 1024)
    damaged = msgspec.structs.replace(second, status=msgspec.structs.replace(second.status, phase=SnapshotPhase.FAILED))
    for before, after, size in ((second, second, 1024), (second, damaged, 4096), (damaged, second, 1024)):
        metrics.show(first, first)
        metrics.show(before, after)
        assert f"tidegate_snapshots_newest_bytes{of_app} {size}.0" in shown(registry)
    metrics.forget(first.key)
    metrics.show(second, damaged)
    assert "tidegate_snapshots_newest_timestamp_seconds{" not in shown(registry)
