"""Applications in the middle of an upgrade, or after one, for tests of decisions. Pure."""

import datetime
from typing import Any

import msgspec

from tidegate.api.spec_hash import recorded_version, spec_hash, version_of
from tidegate.api.streaming_app import (
    Phase,
    RollbackSnapshot,
    StableSpec,
    StreamingApp,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.app import actions as do
from tidegate.app.actions import Plan
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.protocol import ANNOTATION_SPEC_HASH, DriverConfig, QueryReport, from_json
from tidegate_spark.contract.snapshot_protocol import SnapshotReport
from tidegate_testing.observations import NOW, app_with, launched, report_of, running_driver
from tidegate_testing.plans import status_of

IMAGE = "application.image"
A, B, C = "shop/orders:1", "shop/orders:2", "shop/orders:3"
"""Images of three versions."""
NO_POD: dict[str, Any] = {IMAGE: C, "driver.podTemplate": {"spec": {"containers": "none"}}}
"""A change after which no driver pod can be made."""
PIN, COPY = "up-u1-1-1-6b49d200", "up-u1-1-1-6b49d200-copy"
_OLD_RUNS = (UpgradePhase.COPYING, UpgradePhase.REHEARSING)
_UNDER_TEST = (UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING, UpgradePhase.GATE, UpgradePhase.FAILED)
_BEFORE_A_LAUNCH = (*_OLD_RUNS, UpgradePhase.STOPPING, UpgradePhase.REFUSED)
BEGUN = datetime.datetime.fromtimestamp(NOW - 10, datetime.UTC)


def stable_of(app: StreamingApp) -> StableSpec:
    """Return the application's spec as a stable version."""
    return StableSpec(spec_hash=spec_hash(app), spec=version_of(app.spec), lineage=1, stable_time=BEGUN)


def stable(app: StreamingApp) -> StreamingApp:
    """Return the application with its spec as the last stable version."""
    return _with_status(app, last_stable=stable_of(app))


def upgrading(app: StreamingApp, old: StreamingApp, phase: UpgradePhase, **fields: Any) -> StreamingApp:
    """Return the application on its way from the version of ``old`` to its own, by a pin of lineage 1."""
    launched = phase not in _BEFORE_A_LAUNCH
    known: dict[str, Any] = {
        "phase": phase,
        "mode": UpgradeMode.SNAPSHOT,
        "number": 1,
        "from_spec_hash": spec_hash(old),
        "to_spec_hash": spec_hash(app),
        "to_spec": recorded_version(app.spec) if phase in _UNDER_TEST else "",
        "lineage": 1,
        "start_time": BEGUN,
        "phase_start_time": BEGUN,
        "reason": "Reason",
        "message": "Words.",
        "epoch": 2 if launched else 0,
        "rollback_snapshot": RollbackSnapshot(id=PIN, lineage=1, copy=COPY),
    }
    return _with_status(app, last_stable=stable_of(old), upgrade=UpgradeStatus(**{**known, **fields}))


def upgraded(app: StreamingApp, old: StreamingApp) -> StreamingApp:
    """Return the application after an upgrade from the version of ``old``."""
    done = upgrading(app, old, UpgradePhase.COMPLETED, previous=stable_of(old))
    return _with_status(done, last_stable=stable_of(app))


def edited(old: StreamingApp, change: dict[str, Any], **metadata: Any) -> StreamingApp:
    """Return ``old`` with another spec, and the status it has."""
    return app_with(change, status=old.status, **metadata)


def old_app() -> StreamingApp:
    """Return version A, which is stable and runs."""
    return stable(launched(app_with({IMAGE: A}), phase=Phase.RUNNING))


def runs(app: StreamingApp, committed: int = 9, *reports: SnapshotReport, **fields: Any) -> dict[str, Any]:
    """Return driver and agent of an application's version that runs."""
    driver = running_driver(app, ready=True)
    query = QueryReport("main", batch_id=committed, committed=committed, **fields)
    return {"driver": driver, "agent": report_of(driver, queries=(query,), snapshots=reports)}


def runs_with(app: StreamingApp, *queries: QueryReport, **fields: Any) -> dict[str, Any]:
    """Return driver and agent of an application's version that runs with these queries."""
    driver = running_driver(app, ready=True)
    return {"driver": driver, "agent": report_of(driver, queries=queries, **fields)}


def under_test(
    phase: UpgradePhase = UpgradePhase.GATE, change: dict[str, Any] | None = None, **fields: Any
) -> StreamingApp:
    """Return version B on its way to take A's place; after the gate began its launch is epoch 2."""
    epoch = 1 if phase in _OLD_RUNS else 2
    app = launched(app_with({IMAGE: B, **(change or {})}), epoch, phase=Phase.RUNNING)
    return upgrading(app, app_with({IMAGE: A}), phase, **fields)


def record(plan: Plan) -> UpgradeStatus:
    """Return the record of an upgrade that a plan writes; it writes one."""
    upgrade = status_of(plan).upgrade
    assert upgrade is not None
    return upgrade


def launch_of(plan: Plan) -> DriverConfig:
    """Return what the driver is told that a plan creates; it creates one."""
    (create,) = [action for action in plan.actions if isinstance(action, do.CreateDriver)]
    (driver,) = create.manifest["spec"]["containers"]
    (text,) = [each["value"] for each in driver["env"] if each["name"] == "TIDEGATE_CONFIG"]
    return from_json(DriverConfig, text.replace("$$", "$"))


def order_of(plan: Plan) -> do.OrderSnapshots:
    """Return the order about snapshots that a plan gives; it gives one."""
    (order,) = [action for action in plan.actions if isinstance(action, do.OrderSnapshots)]
    return order


def index_of(plan: Plan, kind: type) -> int:
    """Return the place of an action of this kind."""
    return [type(action) for action in plan.actions].index(kind)


def events(plan: Plan) -> list[str]:
    """Return the reasons of a plan's events."""
    return [action.reason for action in plan.actions if isinstance(action, PublishEvent)]


def new_app(phase: UpgradePhase, **fields: Any) -> StreamingApp:
    """Return an application of which version A was stable, and B is on its way."""
    old = old_app()
    return upgrading(edited(old, {IMAGE: B}), old, phase, **fields)


def made_invalid(app: StreamingApp, **spec: Any) -> StreamingApp:
    """Return the application with an edit of which no pod can be made, and fields of spec.upgrade."""
    bad = edited(app, NO_POD)
    upgrade = msgspec.structs.replace(bad.spec.upgrade, **spec)
    return msgspec.structs.replace(bad, spec=msgspec.structs.replace(bad.spec, upgrade=upgrade))


def of_earlier_operator(app: StreamingApp) -> StreamingApp:
    """Return the application with a record that does not have the version under test, only its hash."""
    assert app.status.upgrade is not None
    return _with_status(app, upgrade=msgspec.structs.replace(app.status.upgrade, to_spec=""))


def version_launched(plan: Plan) -> str:
    """Return the hash of the version whose driver a plan creates; it creates one."""
    (create,) = [action for action in plan.actions if isinstance(action, do.CreateDriver)]
    version: str = create.manifest["metadata"]["annotations"][ANNOTATION_SPEC_HASH]
    return version


def _with_status(app: StreamingApp, **fields: Any) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, **fields))
