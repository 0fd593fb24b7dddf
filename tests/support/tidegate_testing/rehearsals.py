"""Applications whose new version is rehearsed, for tests of decisions. Pure."""

import dataclasses
import json
from typing import Any

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import RehearsalStatus, StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.actions import Plan
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.protocol import DriverConfig, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalEnd, RehearsalResult
from tidegate_testing.observations import NOW, app_with, driver_of
from tidegate_testing.upgrades import BEGUN, IMAGE, A, runs, under_test

POD = "orders-rehearsal-1"
ASKED: dict[str, Any] = {"upgrade.rehearsal": {"batches": 3, "timeoutSeconds": 300}}
BEGUN_REHEARSAL = RehearsalStatus(start_time=BEGUN)
PASSED = RehearsalEnd(RehearsalResult.PASSED, committed={"main": 3})
FAILED = RehearsalEnd(RehearsalResult.FAILED, Reason.STATE_SCHEMA, {"main": 0})


def rehearsing(change: dict[str, Any] | None = None, **fields: Any) -> StreamingApp:
    """Return version B whose rehearsal was begun, while version A is in force."""
    return under_test(UpgradePhase.REHEARSING, {**ASKED, **(change or {})}, **{"rehearsal": BEGUN_REHEARSAL, **fields})


def old_runs() -> dict[str, Any]:
    """Return driver and agent of version A, which runs."""
    return runs(app_with({IMAGE: A}))


def pod_of(app: StreamingApp, **fields: Any) -> PodRecord:
    """Return the pod of the rehearsal of the application's version; it runs unless told otherwise."""
    known = {"name": POD, "role": "rehearsal", "uid": "r-1", "epoch": 0, "spec_hash": spec_hash(app)}
    up = {"phase": "Running", "running": True, "start_time": NOW - 8, "created_at": NOW - 9}
    return driver_of(app, **{**known, **up, **fields})


def ended_pod(
    app: StreamingApp, message: str = "", exit_code: int = 1, reason: str = "Error", **fields: Any
) -> PodRecord:
    """Return that pod after its process ended."""
    ended = Exit(exit_code, reason, message, NOW - 1)
    phase = "Succeeded" if exit_code == 0 else "Failed"
    return pod_of(app, **{"phase": phase, "running": False, "ended": ended, **fields})


def texts(
    end: RehearsalEnd | None, reason: Reason = Reason.APPLICATION_FAILED, exception: str = "", message: str = "because"
) -> str:
    """Return the last words of a rehearsal."""
    return to_json(dataclasses.replace(Termination(reason, message, 1, exception), rehearsal=end))


def created(plan: Plan) -> dict[str, Any]:
    """Return the pod of a rehearsal that a plan creates; it creates one."""
    (create,) = [action for action in plan.actions if isinstance(action, do.CreateRehearsal)]
    return create.manifest


def config_of(manifest: dict[str, Any]) -> DriverConfig:
    """Return what a rehearsal's process is told."""
    (container,) = manifest["spec"]["containers"]
    (text,) = [each["value"] for each in container["env"] if each["name"] == "TIDEGATE_CONFIG"]
    assert json.loads(text)
    return from_json(DriverConfig, text)
