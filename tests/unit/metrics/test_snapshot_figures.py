"""The operator's figures about StreamSnapshots: what is counted, and goes with the last one."""

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from tidegate.metrics.snapshots import SnapshotFigures
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
