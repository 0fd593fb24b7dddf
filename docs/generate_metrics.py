"""Write docs/metrics.md's tables from the metrics that operator and agent export; with ``--check`` say what differs.

The tables stand between two comments; the text around them is written by hand. Reads and writes one file.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from docs.generated_page import replace_between, write_or_check
from tidegate.api.control_message import ControlMessage, ControlMessageSpec, ControlMessageStatus, MessagePhase
from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot, StreamSnapshotSpec, StreamSnapshotStatus
from tidegate.api.streaming_app import (
    LocalReference,
    Metadata,
    RehearsalStatus,
    RepartitionStatus,
    StreamingAppStatus,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.app.metrics.lifecycle import Restart
from tidegate.autoscaling.algorithm.evaluate import Evaluation
from tidegate.autoscaling.algorithm.measured import Measured
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.recommend import Advice
from tidegate.autoscaling.algorithm.settings import Mode
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.control_protocol import ChannelReport
from tidegate_spark.contract.protocol import DriverConfig, ExecutorSettings, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.metrics import ChannelMetrics
from tidegate_spark.monitoring.metrics import build_registry
from tidegate_spark.process.progress import Commit, Progress
from tidegate_spark.snapshots.service.snapshot_metrics import SnapshotMetrics

PAGE = Path(__file__).with_name("metrics.md")
OWN = "tidegate_"
APP, SNAPSHOT = ("shop", "orders"), ("shop", "before-upgrade")
"""Namespace and name of what the samples are about."""
_UNITS = ("rows_per_second", "seconds", "bytes", "rows")


@dataclass(frozen=True)
class Described:
    """One metric as Prometheus knows it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str

    @property
    def unit(self) -> str:
        """The unit in the name; empty for numbers of things."""
        base = self.name.removesuffix("_total")
        return next((unit.replace("_per_", "/") for unit in _UNITS if base.endswith(f"_{unit}")), "")


def exercised_operator() -> CollectorRegistry:
    """Return an operator's registry in which every metric has a sample."""
    return exercised_metrics().registry


def exercised_metrics() -> OperatorMetrics:
    """Return an operator's metrics, each with a sample: of the application ``APP`` and its one snapshot."""
    metrics, app = OperatorMetrics(), APP
    metrics.count_request("GET", "200", 0.1)
    metrics.count_reconcile("done", 0.1)
    metrics.count_action("CreateDriver")
    metrics.count_poll("answered")
    metrics.count_event("pods")
    metrics.observe_queue_latency(0.1)
    metrics.show_leader(True)
    metrics.show_app(app, phase="Running", health="Ready", reason="Running", epoch=1)
    metrics.count_restarts(app, [Restart("SpecChanged", 1)])
    metrics.count_refused_snapshot(app)
    rolling_back, rolled_back = _upgrade(UpgradePhase.ROLLING_BACK), _upgrade(UpgradePhase.ROLLED_BACK)
    metrics.upgrades.show(app, rolling_back, rolled_back)
    metrics.rehearsals.show(app, rolling_back, _upgrade(UpgradePhase.REFUSED, rehearsed=True))
    metrics.repartitions.show(app, rolling_back, _repartitioned())
    metrics.snapshots.show(_snapshot(SnapshotPhase.COPYING), _snapshot(SnapshotPhase.FAILED))
    metrics.snapshots.show(_snapshot(SnapshotPhase.COPYING), _snapshot(SnapshotPhase.READY))
    metrics.snapshots.count_expired(app)
    metrics.snapshots.count_verified(app, "whole")
    metrics.snapshots.count_exported(app, complete=True)
    metrics.snapshots.count_taken_by_pod(app, 1.0, copied=1, shared=1)
    sent = _message(None)
    for phase in (MessagePhase.APPLIED, MessagePhase.FAILED, MessagePhase.EXPIRED):
        metrics.control.count(sent, _message(phase))
        metrics.control.show(app, {phase.value: 1})
    metrics.autoscaling.show(app, _advice())
    return metrics


def _advice() -> Advice:
    past = Past(target=2, packing=1.0)
    evaluation = Evaluation(step=Reason.SCALE_UP, current=1, recommended=2, due=True, past=past)
    measured = Measured(60.0, 2, 1, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, saturated=False, lag_rows=0, backlog=0.0)
    return Advice(Mode.ACTIVE, evaluation, "", measured, 0.0)


def _message(phase: MessagePhase | None) -> ControlMessage:
    time = datetime.datetime.fromtimestamp(0, datetime.UTC) if phase is not None else None
    return ControlMessage(
        metadata=Metadata(name="faster", namespace="shop", uid="uid"),
        spec=ControlMessageSpec(app_ref=LocalReference(name="orders"), type="reload-config"),
        status=ControlMessageStatus(phase=phase, published_time=time, completion_time=time),
    )


def _repartitioned() -> StreamingAppStatus:
    time = datetime.datetime.fromtimestamp(0, datetime.UTC)
    found = _upgrade(UpgradePhase.STOPPING)
    assert found.upgrade is not None
    done = RepartitionStatus(partitions=8, before=4, epoch=2, result="Done", start_time=time, completion_time=time)
    return StreamingAppStatus(upgrade=msgspec.structs.replace(found.upgrade, repartition=done))


def _upgrade(phase: UpgradePhase, rehearsed: bool = False) -> StreamingAppStatus:
    time = datetime.datetime.fromtimestamp(0, datetime.UTC)
    rehearsal = RehearsalStatus(result="Failed", start_time=time, completion_time=time) if rehearsed else None
    upgrade = UpgradeStatus(
        phase=phase,
        mode=UpgradeMode.SNAPSHOT,
        number=1,
        from_spec_hash="",
        to_spec_hash="",
        lineage=1,
        start_time=time,
        phase_start_time=time,
        rehearsal=rehearsal,
    )
    return StreamingAppStatus(upgrade=upgrade)


def _snapshot(phase: SnapshotPhase) -> StreamSnapshot:
    return StreamSnapshot(
        metadata=Metadata(name=SNAPSHOT[1], namespace=SNAPSHOT[0], uid="uid"),
        spec=StreamSnapshotSpec(app_ref=LocalReference(name="orders")),
        status=StreamSnapshotStatus(
            phase=phase, bytes=1024, ready_time=datetime.datetime.fromtimestamp(1, datetime.UTC)
        ),
    )


def exercised_agent() -> CollectorRegistry:
    """Return an agent's registry in which every metric has a sample."""
    executor = ExecutorSettings(1, "image", "IfNotPresent", "account", "orders-e1")
    storage = Storage("s3://bucket/apps/shop/orders")
    config = DriverConfig("orders", "shop", "uid", 1, 1, "orders-driver", "local:///main.py", storage, executor)
    progress = Progress(config)
    registry = build_registry(config, progress)
    snapshots = SnapshotMetrics(config)
    snapshots.newest(1.0)
    registry.register(snapshots)
    report = ChannelReport("Kafka", connected=True, received=1, ended={"Done": 1}, waiting=0)
    registry.register(ChannelMetrics(config, lambda: report))
    progress.query_started("main")
    progress.query_committed("main", Commit(0, 10, 1.0, 2.0, 100, 3, 400, 1.0, lag_rows=5))
    return registry


def operator_metrics() -> list[Described]:
    """Return what the operator exports."""
    return describe(exercised_operator())


def agent_metrics() -> list[Described]:
    """Return what a driver's agent exports."""
    return describe(exercised_agent())


def describe(registry: CollectorRegistry) -> list[Described]:
    """Return a registry's own metrics by name; what every process exports is left out.

    Raises:
        ValueError: a metric has no sample, so that its labels are not known.
    """
    families = [family for family in registry.collect() if family.name.startswith(OWN)]
    return sorted((_describe(family) for family in families), key=lambda described: described.name)


def _describe(family: Metric) -> Described:
    if not family.samples:
        raise ValueError(f"{family.name} has no sample: let docs/generate_metrics.py make one")
    name = family.name + ("_total" if family.type == "counter" else "")
    return Described(name, family.type, tuple(k for k in family.samples[0].labels if k != "le"), family.documentation)


def table(metrics: Iterable[Described]) -> str:
    """Return the table of metrics; pure."""
    rows = [
        f"| `{m.name}` | {m.kind} | {m.unit} | {', '.join(f'`{label}`' for label in m.labels)} | {m.help} |"
        for m in metrics
    ]
    return "\n".join(["| Metric | Type | Unit | Labels | |", "|-|-|-|-|-|", *rows])


def fill(page: str) -> str:
    """Return the page with its tables rewritten.

    Raises:
        ValueError: a place for a table is missing.
    """
    for owner, metrics in (("operator", operator_metrics()), ("agent", agent_metrics())):
        begin, end = f"<!-- {owner}: from docs/generate_metrics.py -->", f"<!-- {owner}: end -->"
        page = replace_between(page, begin, end, table(metrics))
    return page


def main(arguments: Sequence[str]) -> int:
    """Write, or check; return the exit code: 0, or 1 if something differs."""
    return write_or_check(PAGE, fill, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
