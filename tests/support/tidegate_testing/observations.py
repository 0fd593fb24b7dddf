"""Observations that tests of decisions need, built from a few words. Pure."""

import datetime
import json
from typing import Any

import msgspec

from tidegate.access.keys import OperatorKeys
from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Condition, Phase, StreamingApp, StreamingAppStatus, decode_app
from tidegate.app.observation import Observation
from tidegate.cache.process_state import ProcessState, TimedReport
from tidegate.pods.records.names import agent_secret_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import Exit, PodRecord, Waiting
from tidegate_spark.contract.protocol import FINALIZER, AgentReport, DriverState, Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.values import body

NOW = 1_800_000_000.0
KEYS = OperatorKeys(b"the operator's key of all tests ..")
PLATFORM = Platform("example/tidegate-operator:1", key_id=KEYS.id)
UID = "u-1"


def app_with(
    change: dict[str, Any] | None = None, *, status: StreamingAppStatus | None = None, **metadata: Any
) -> StreamingApp:
    """Return the smallest application with our finalizer, a status, and other metadata where given."""
    resource = body(change)
    resource["metadata"] = {**resource["metadata"], "finalizers": [FINALIZER], **metadata}
    app = decode_app(json.loads(json.dumps(resource)))
    return app if status is None else msgspec.structs.replace(app, status=status)


def launched(app: StreamingApp, epoch: int = 1, **fields: Any) -> StreamingApp:
    """Return the application with the status of one that was launched."""
    status = StreamingAppStatus(epoch=epoch, lineage=1, applied_spec_hash=spec_hash(app))
    return msgspec.structs.replace(app, status=msgspec.structs.replace(status, **fields))


def never_launched(app: StreamingApp) -> StreamingApp:
    """Return the application as an earlier operator left one of which no pod could be made: with our finalizer."""
    when = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    conditions = tuple(
        Condition(type=kind, status="False", reason=Reason.INVALID_SPEC, last_transition_time=when)
        for kind in ("Ready", "Available")
    )
    status = msgspec.structs.replace(app.status, phase=Phase.PENDING, conditions=conditions)
    return msgspec.structs.replace(app, status=status)


def lost_unbuildable(app: StreamingApp) -> StreamingApp:
    """Return the application with what the status is of one that lost it while no pod could be made."""
    return msgspec.structs.replace(app, status=msgspec.structs.replace(never_launched(app).status, epoch=1))


def deleted(app: StreamingApp) -> StreamingApp:
    """Return the application with somebody's wish to delete it."""
    when = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    return msgspec.structs.replace(app, metadata=msgspec.structs.replace(app.metadata, deletion_timestamp=when))


def driver_of(app: StreamingApp, **fields: Any) -> PodRecord:
    """Return the driver pod of the application's present epoch, pending unless told otherwise."""
    known: dict[str, Any] = {
        "namespace": app.metadata.namespace,
        "name": f"{app.metadata.name}-driver",
        "uid": "pod-1",
        "resource_version": "10",
        "app": app.metadata.name,
        "role": "driver",
        "epoch": max(app.status.epoch, 1),
        "spec_hash": spec_hash(app),
        "app_uid": app.metadata.uid,
        "owner_uid": app.metadata.uid,
        "phase": "Pending",
        "created_at": NOW - 100,
    }
    fields = {**known, **fields}
    secret = agent_secret_name(fields["app"], fields["app_uid"], fields["epoch"], PLATFORM.key_id)
    return PodRecord(**{"agent_secret": secret, **fields})


def running_driver(app: StreamingApp, **fields: Any) -> PodRecord:
    """Return a driver whose process runs."""
    up = {"phase": "Running", "running": True, "start_time": NOW - 50, "ip": "10.0.0.5", "node": "node0"}
    return driver_of(app, **{**up, **fields})


def executor_of(app: StreamingApp, number: int, **fields: Any) -> PodRecord:
    """Return a running executor of the present epoch."""
    epoch = fields.get("epoch", max(app.status.epoch, 1))
    up = {"name": f"{app.metadata.name}-e{epoch}-exec-{number}", "uid": f"exec-{epoch}-{number}", "role": "executor"}
    driver = "pod-1" if epoch == max(app.status.epoch, 1) else f"pod-of-{epoch}"
    return running_driver(app, **{**up, "spec_hash": "", "owner_uid": driver, **fields})


def report_of(driver: PodRecord, state: DriverState = DriverState.RUNNING, **fields: Any) -> TimedReport:
    """Return an answer of the driver's agent, taken now."""
    known: dict[str, Any] = {
        "app": driver.app,
        "uid": UID,
        "epoch": driver.epoch,
        "state": state,
        "executors_wanted": 1,
        "ready": state is DriverState.RUNNING,
    }
    return TimedReport(AgentReport(**{**known, **fields}), NOW, driver.uid, driver.restarts)


def waiting(reason: str, container: str = "driver") -> Waiting:
    """Return a container that the kubelet cannot start."""
    return Waiting(container, "shop/orders:1", reason, "the kubelet's words")


def ended_with(reason: Reason, exit_code: int, exception: str = "", message: str = "because") -> Exit:
    """Return the end of a driver process that told why it ended."""
    reported = Termination(reason, message, 1, exception)
    return Exit(exit_code, "Completed" if exit_code == 0 else "Error", to_json(reported), NOW - 5)


def observe(app: StreamingApp, **fields: Any) -> Observation:
    """Return an observation of the application, with access known and nothing else around it."""
    known: dict[str, Any] = {"access_ready": True, "memory": ProcessState(status_written_at=NOW - 3600)}
    return Observation(app=app, spec_hash=spec_hash(app), platform=PLATFORM, **{**known, **fields})
