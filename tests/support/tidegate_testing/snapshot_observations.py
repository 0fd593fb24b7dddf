"""Observations of StreamSnapshots that tests of decisions need, built from a few words. Pure."""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Any

import msgspec

from tidegate.api.spec_hash import spec_hash, version_of
from tidegate.api.stream_snapshot import (
    SnapshotApp,
    SnapshotPhase,
    SnapshotVersion,
    StreamSnapshot,
    StreamSnapshotSpec,
    StreamSnapshotStatus,
)
from tidegate.api.streaming_app import DeletionPolicy, LocalReference, Metadata, Phase, StreamingApp
from tidegate.pods.builders.storage_pod import hash_of_taken
from tidegate.pods.records.record import Exit, PodRecord
from tidegate.snapshots.actions import SnapshotPlan, WriteSnapshotStatus
from tidegate.snapshots.builders.snapshot_pod import storage_of
from tidegate.snapshots.history import History, Later
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.protocol import SNAPSHOT_FINALIZER, AgentReport, DriverState, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import QueryPin, SnapshotReport, SnapshotReports, SnapshotState
from tidegate_testing.observations import NOW, PLATFORM, UID, app_with, driver_of, launched, running_driver

SNAPSHOT_UID = "aabbccdd-0000"
ID = "nightly-aabbccdd"
TIME = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
APP = launched(app_with(), phase=Phase.RUNNING)
SUSPENDED = launched(app_with({"suspend": True}), phase=Phase.SUSPENDED)


def snapshot(
    status: StreamSnapshotStatus | None = None, *, policy: DeletionPolicy = DeletionPolicy.RETAIN, **metadata: Any
) -> StreamSnapshot:
    """Return a StreamSnapshot of the application ``orders``; it has our finalizer if it has a status."""
    known: dict[str, Any] = {
        "name": "nightly",
        "namespace": "shop",
        "uid": SNAPSHOT_UID,
        "generation": 1,
        "resource_version": "20",
        "finalizers": (SNAPSHOT_FINALIZER,) if status is not None else (),
    }
    return StreamSnapshot(
        metadata=Metadata(**{**known, **metadata}),
        spec=StreamSnapshotSpec(app_ref=LocalReference(name="orders"), deletion_policy=policy),
        status=status or StreamSnapshotStatus(),
    )


def begun(app: StreamingApp = APP, **fields: Any) -> StreamSnapshotStatus:
    """Return the status of a snapshot that was ordered."""
    known: dict[str, Any] = {
        "phase": SnapshotPhase.PENDING,
        "snapshot_id": ID,
        "app": SnapshotApp(uid=app.metadata.uid, lineage=app.status.lineage),
        "image": app.spec.application.image,
        "version": SnapshotVersion(spec_hash=spec_hash(app), spec=version_of(app.spec)),
        "storage": storage_of(app),
        "start_time": TIME,
    }
    return StreamSnapshotStatus(**{**known, **fields})


def ready_snapshot(app: StreamingApp = APP, **changes: Any) -> StreamSnapshot:
    """Return a complete snapshot, with the status that the operator writes of one."""
    return written(observe_running(snapshot(begun(app)), report(SnapshotState.READY), app=app), **changes)


def deleted(of: StreamSnapshot, policy: DeletionPolicy | None = None) -> StreamSnapshot:
    """Return the snapshot with somebody's wish to delete it."""
    metadata = msgspec.structs.replace(of.metadata, deletion_timestamp=TIME)
    spec = of.spec if policy is None else msgspec.structs.replace(of.spec, deletion_policy=policy)
    return msgspec.structs.replace(of, metadata=metadata, spec=spec)


def report(state: SnapshotState, reason: Reason = Reason.NONE, **fields: Any) -> SnapshotReport:
    """Return what is told of the snapshot; of a complete one, everything."""
    known: dict[str, Any] = {"message": "because" if reason.value else ""}
    if state is SnapshotState.READY:
        known |= {
            "files": 34,
            "bytes": 2048,
            "of_files": 34,
            "of_bytes": 2048,
            "new_bytes": 512,
            "lineage": 1,
            "parent": "earlier-11112222",
            "digest": "sha256:1",
            "manifest": f"s3://streams/apps/shop/orders/snapshots/{ID}/manifest.json",
            "spark_version": "4.2.1",
            "queries": {"main": QueryPin(7, '{"topic":{"0":5}}')},
        }
    return SnapshotReport(ID, state, reason, **{**known, **fields})


def agent(*reports: SnapshotReport, state: DriverState = DriverState.RUNNING, uid: str = UID) -> AgentReport:
    """Return a driver's report."""
    return AgentReport("orders", uid, 1, state, ready=True, snapshots=reports)


def observe(of: StreamSnapshot, **fields: Any) -> SnapshotObservation:
    """Return an observation of the snapshot, with nothing around it."""
    return SnapshotObservation(snapshot=of, platform=PLATFORM, **fields)


def observe_running(of: StreamSnapshot, *reports: SnapshotReport, **fields: Any) -> SnapshotObservation:
    """Return an observation in which the application runs, and its agent tells these reports."""
    app = fields.get("app", APP)
    known: dict[str, Any] = {
        "app": app,
        "driver": running_driver(app),
        "agent": agent(*reports, uid=app.metadata.uid),
    }
    return observe(of, **{**known, **fields})


def pod(app: StreamingApp = SUSPENDED, *, disposing: bool = False, **fields: Any) -> PodRecord:
    """Return the snapshot's own pod, at work unless told otherwise."""
    name = f"{ID}-{'dispose' if disposing else 'take'}"
    known = {"name": name, "role": "snapshot", "phase": "Running", "running": True, "spec_hash": hash_of_taken(app)}
    return driver_of(app, **{**known, "epoch": 0, "owner_uid": SNAPSHOT_UID, **fields})


def pod_that_said(*reports: SnapshotReport, disposing: bool = False, exit_code: int = 0, **fields: Any) -> PodRecord:
    """Return a pod whose process ended with these reports."""
    message = to_json(SnapshotReports(reports))
    ended = Exit(exit_code, "Completed" if exit_code == 0 else "Error", message, fields.pop("completion_time", NOW - 5))
    phase = "Succeeded" if exit_code == 0 else "Running"
    return pod(disposing=disposing, phase=phase, running=False, ended=ended, **fields)


def later_than(of: StreamSnapshot, others: Iterable[StreamSnapshot]) -> Later:
    """Return which of the others were made after a snapshot, as the index counts them."""
    history = History()
    for other in others:
        history.add(other)
    return history.later(of)


def status_of(plan: SnapshotPlan) -> StreamSnapshotStatus:
    """Return the status that a plan writes; it writes one."""
    (status,) = [action.status for action in plan.actions if isinstance(action, WriteSnapshotStatus)]
    return status


def said(plan: SnapshotPlan) -> tuple[SnapshotPhase | None, str, str]:
    """Return phase, the condition that is true, and the reason, as a plan writes them."""
    status = status_of(plan)
    (true,) = [c.type for c in status.conditions if c.status == "True"]
    return status.phase, true, plan.reason


def kinds(plan: SnapshotPlan) -> list[str]:
    """Return the names of a plan's actions, without what is only told."""
    return [type(action).__name__ for action in plan.actions if type(action).__name__ != "PublishEvent"]


def written(o: SnapshotObservation, **changes: Any) -> StreamSnapshot:
    """Return the snapshot after the observation's own plan was carried out, and other changes of its status."""
    writes = [a.status for a in decide_snapshot(o, NOW).actions if isinstance(a, WriteSnapshotStatus)]
    status = writes[0] if writes else o.snapshot.status
    return msgspec.structs.replace(o.snapshot, status=msgspec.structs.replace(status, **changes))


def settled(o: SnapshotObservation) -> SnapshotObservation:
    """Return the observation after its own plan was carried out."""
    memory = dataclasses.replace(o.memory, status_written_at=NOW)
    return dataclasses.replace(o, snapshot=written(o), memory=memory)
