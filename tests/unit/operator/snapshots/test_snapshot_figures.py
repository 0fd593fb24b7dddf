"""The operator's figures about StreamSnapshots: what is counted, and goes with the last one."""

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from tidegate.snapshots.metrics import SnapshotFigures
from tidegate_testing.snapshot_observations import ready_snapshot

APP = ("shop", "orders")


def shown(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def test_exports_are_counted_by_result_until_the_last_snapshot_goes() -> None:
    registry = CollectorRegistry()
    figures, snapshot = SnapshotFigures(registry), ready_snapshot()
    figures.show(msgspec.structs.replace(snapshot), snapshot)
    for complete in (True, True, False):
        figures.count_exported(APP, complete)
    text = shown(registry)
    assert 'tidegate_snapshots_exported_total{app="orders",namespace="shop",result="complete"} 2.0' in text
    assert 'tidegate_snapshots_exported_total{app="orders",namespace="shop",result="failed"} 1.0' in text
    figures.forget(snapshot.key)
    assert "tidegate_snapshots_exported_total{" not in shown(registry)


def test_what_pods_took_is_told_until_the_last_snapshot_goes() -> None:
    registry = CollectorRegistry()
    figures, snapshot = SnapshotFigures(registry), ready_snapshot()
    figures.show(msgspec.structs.replace(snapshot), snapshot)
    figures.count_taken_by_pod(APP, 40.0, copied=512, shared=1536)
    text = shown(registry)
    of_app = '{app="orders",namespace="shop"}'
    assert f"tidegate_snapshot_pod_seconds_count{of_app} 1.0" in text
    assert f"tidegate_snapshot_pod_seconds_sum{of_app} 40.0" in text
    assert f"tidegate_snapshot_pod_copied_bytes_total{of_app} 512.0" in text
    assert f"tidegate_snapshot_pod_shared_bytes_total{of_app} 1536.0" in text
    figures.forget(snapshot.key)
    assert "tidegate_snapshot_pod_seconds_count{" not in shown(registry)
    assert "tidegate_snapshot_pod_copied_bytes_total{" not in shown(registry)
    assert "tidegate_snapshot_pod_shared_bytes_total{" not in shown(registry)
