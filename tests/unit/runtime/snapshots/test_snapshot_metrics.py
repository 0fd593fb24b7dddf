"""What the agent tells Prometheus of snapshots, and the operator in its report."""

from prometheus_client import CollectorRegistry, generate_latest

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets, clean_report
from tidegate_spark.snapshots.service.snapshot_metrics import SnapshotMetrics
from tidegate_testing.driver_process import driver_config

CONFIG = driver_config("orders", "local:///m.py", Storage("s3://b/p"), epoch=3)
LABELS = 'app="orders",epoch="3",namespace="tests"'


def shown(metrics: SnapshotMetrics) -> dict[str, float]:
    """Return what a scrape shows, series -> value."""
    registry = CollectorRegistry()
    registry.register(metrics)
    lines = generate_latest(registry).decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_a_complete_snapshot_counts_with_its_duration_and_what_it_shares() -> None:
    metrics = SnapshotMetrics(CONFIG)
    metrics.copied(60)
    metrics.copied(40)
    metrics.ended(SnapshotReport("a", SnapshotState.READY, bytes=400, new_bytes=100, seconds=3.0))
    series = shown(metrics)
    assert series[f"tidegate_snapshot_seconds_count{{{LABELS}}}"] == 1
    assert series[f"tidegate_snapshot_seconds_sum{{{LABELS}}}"] == 3
    assert series['tidegate_snapshot_seconds_bucket{app="orders",epoch="3",le="2.5",namespace="tests"}'] == 0
    assert series['tidegate_snapshot_seconds_bucket{app="orders",epoch="3",le="5.0",namespace="tests"}'] == 1
    assert series[f"tidegate_snapshot_copied_bytes_total{{{LABELS}}}"] == 100
    assert series[f"tidegate_snapshot_shared_bytes_total{{{LABELS}}}"] == 300


def test_failures_count_by_reason_and_the_first_is_seen_as_a_step() -> None:
    metrics = SnapshotMetrics(CONFIG)
    name = 'tidegate_snapshot_failures_total{app="orders",epoch="3",namespace="tests",reason="BatchLost"}'
    assert shown(metrics)[name] == 0
    metrics.ended(SnapshotReport("a", SnapshotState.FAILED, Reason.BATCH_LOST))
    assert shown(metrics)[name] == 1


def test_what_is_disposed_of_is_no_snapshot_and_no_failure() -> None:
    metrics = SnapshotMetrics(CONFIG)
    before = shown(metrics)
    metrics.ended(SnapshotReport("a", SnapshotState.DISPOSED, seconds=5.0))
    assert shown(metrics) == before


def test_the_newest_grows_older_and_without_one_there_is_no_age() -> None:
    metrics = SnapshotMetrics(CONFIG, lambda: 1060.0)
    assert f"tidegate_snapshot_age_seconds{{{LABELS}}}" not in shown(metrics)
    metrics.newest(1000.0)
    assert shown(metrics)[f"tidegate_snapshot_age_seconds{{{LABELS}}}"] == 60
    metrics.newest(None)
    assert f"tidegate_snapshot_age_seconds{{{LABELS}}}" not in shown(metrics)


def test_the_report_tells_of_snapshots_without_secrets() -> None:
    progress = Progress(CONFIG)
    progress.snapshots = lambda: (SnapshotReport("a", SnapshotState.WAITING, message="key hush-hush rejected"),)
    (reported,) = clean_report(progress.report(), Secrets(["hush-hush"])).snapshots
    assert reported.message == "key [redacted] rejected"
