"""Changes of an upgrade's record, as values, and the questions that several of them ask. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tidegate.api.spec_hash import has_same_store, held_version, recorded_version
from tidegate.api.status.autoscaling_status import AutoscalingStatus
from tidegate.api.streaming_app import (
    RollbackSnapshot,
    SnapshotBatch,
    StableSpec,
    StreamingAppSpec,
    StreamingAppStatus,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.api.values.plain_secrets import SecretGoneError, without_secrets
from tidegate.app.observation import Observation, has_other_key
from tidegate.app.rules.origin import lineage_of
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate_spark.contract.protocol import DriverState, QueryReport
from tidegate_spark.contract.reasons import AnyReason, Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport

OLD_RUNS = (UpgradePhase.COPYING, UpgradePhase.REHEARSING)
"""Phases in which the previous version runs, and nothing was stopped."""
BEFORE_A_LAUNCH = (UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING)
"""Phases in which the previous version has been asked to stop, and the new one was not launched yet."""
UNDER_TEST = (*BEFORE_A_LAUNCH, UpgradePhase.GATE, UpgradePhase.FAILED)
"""Phases in which the spec's version is to run, or runs, and is not stable; in all others a stable one does."""
UNDER_WAY = (*OLD_RUNS, *BEFORE_A_LAUNCH, UpgradePhase.GATE, UpgradePhase.ROLLING_BACK)
"""Phases after which another one comes by itself."""

UPGRADE_REASONS = {
    UpgradePhase.COPYING: Reason.UPGRADE_COPYING,
    UpgradePhase.REHEARSING: Reason.UPGRADE_REHEARSING,
    UpgradePhase.STOPPING: Reason.UPGRADE_STOPPING,
    UpgradePhase.REPARTITIONING: Reason.UPGRADE_REPARTITIONING,
    UpgradePhase.GATE: Reason.UPGRADE_GATE,
    UpgradePhase.COMPLETED: Reason.UPGRADE_COMPLETED,
    UpgradePhase.FAILED: Reason.UPGRADE_FAILED,
    UpgradePhase.ROLLING_BACK: Reason.UPGRADE_ROLLING_BACK,
    UpgradePhase.ROLLED_BACK: Reason.UPGRADE_ROLLED_BACK,
    UpgradePhase.REFUSED: Reason.UPGRADE_REFUSED,
    UpgradePhase.WITHDRAWN: Reason.UPGRADE_WITHDRAWN,
}
"""The condition's and the event's reason in each phase."""

MOST_OBSOLETE = 64
"""Ids of snapshots to be disposed of that a status holds; more of them, and the API server would take no status."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of what the status says of upgrades; what follows from it is done after it was written."""

    upgrade: UpgradeStatus | None = None
    """None: stays as it is."""
    stable: StableSpec | None = None
    """None: stays as it is."""
    epoch: int = 0
    """Used from now on, by a pod that is not the driver; 0: stays as it is."""
    adopt: tuple[int, int] = (0, 0)
    """Epoch and lineage of the driver that runs, where the status has others; zeros: it has these."""
    autoscaling: AutoscalingStatus | None = None
    """With the number of executors of that driver, where the status has lost it; None: stays as it is."""


def applied(status: StreamingAppStatus, step: Step) -> StreamingAppStatus:
    """Return the status with the change."""
    if any(step.adopt):
        status = adopted(status, *step.adopt)
    return replace(
        status,
        upgrade=step.upgrade or status.upgrade,
        last_stable=step.stable or status.last_stable,
        epoch=step.epoch or status.epoch,
        autoscaling=step.autoscaling or status.autoscaling,
    )


def adopted(status: StreamingAppStatus, epoch: int, lineage: int, opening: bool = False) -> StreamingAppStatus:
    """Return the status with the epoch of the last launch and the lineage that the storage has, 0 if it has none.

    ``opening``: that lineage did not start with what the status says.
    """
    lineage = lineage or status.lineage
    epoch = max(status.epoch, epoch)
    if lineage == status.lineage and not opening and epoch == status.epoch:
        return status
    same, began = lineage == status.lineage, status.start_from
    # What is not to be opened any more began with nothing; an upgrade under way is begun again, by what the spec says.
    unopened = began is not None and (began.lineage > lineage or (opening and began.lineage == lineage))
    return replace(
        status,
        epoch=epoch,
        lineage=lineage,
        state_partitions=status.state_partitions if same else 0,
        queries=status.queries if same else (),
        batch=status.batch if same else None,
        batches=status.batches if same else (),
        start_from=None if unopened else began,
        upgrade=None if opening else _kept(status.upgrade, lineage),
    )


def _kept(upgrade: UpgradeStatus | None, lineage: int) -> UpgradeStatus | None:
    """Return what stays of a record once another epoch, and maybe another lineage, is known to be the application's.

    One that is about another lineage is from before a rollback, a repartition or a start without state. What it could
    undo was undone, or is what the application has lived on since: nothing is rolled back to there once more, and its
    rollback snapshot is disposed of, of which nobody else knows.
    """
    if upgrade is None or upgrade.phase in UNDER_WAY:
        return None
    if upgrade.lineage == lineage:
        return upgrade
    return None if upgrade.phase is UpgradePhase.FAILED else replace(without_rollback_snapshot(upgrade), previous=None)


def change(
    upgrade: UpgradeStatus,
    message: str = "",
    reason: AnyReason | str = "",
    *,
    stable: StableSpec | None = None,
    uses_epoch: int = 0,
    **fields: Any,
) -> Step:
    """Return the step by which the record says something else; its line in the table says which phase that leads to.

    What is empty stays: message, reason (or the table has it), the stable version, the epoch that is used from now on.
    ``fields`` are those of the record that change.
    """
    fields |= {name: value for name, value in (("message", message), ("reason", reason)) if value}
    return Step(replace(upgrade, **fields), stable=stable, epoch=uses_epoch)


def with_obsolete(upgrade: UpgradeStatus, *going: str) -> tuple[str, ...]:
    """Return what is to be disposed of, with more snapshots; empty ids are none."""
    return tuple(dict.fromkeys(name for name in (*upgrade.obsolete, *going) if name))[-MOST_OBSOLETE:]


def with_complete_snapshot(upgrade: UpgradeStatus, batches: Mapping[str, int]) -> UpgradeStatus:
    """Return the record with its rollback snapshot as complete, with the last batch of each query in it."""
    snapshot = upgrade.rollback_snapshot
    assert snapshot is not None
    held = tuple(SnapshotBatch(name=name, batch_id=batch) for name, batch in sorted(batches.items()))
    whole = replace(snapshot, batches=held, copy="")  # the copy was of use only until then
    return replace(upgrade, rollback_snapshot=whole, obsolete=with_obsolete(upgrade, snapshot.copy))


def is_pending(upgrade: UpgradeStatus | None) -> bool:
    """Return whether state is to be repartitioned before the next launch."""
    return upgrade is not None and upgrade.repartition is not None and not upgrade.repartition.result


def ids_of(snapshot: RollbackSnapshot | None) -> tuple[str, ...]:
    """Return the snapshots that go with a rollback snapshot, none if there is none; the copy's may be empty."""
    if snapshot is None:
        return ()
    return (*(earlier.id for earlier in snapshot.fallbacks), snapshot.copy, snapshot.id)


def without_rollback_snapshot(upgrade: UpgradeStatus) -> UpgradeStatus:
    """Return the record without its rollback snapshot, which is disposed of with all that goes with it."""
    return replace(upgrade, rollback_snapshot=None, obsolete=with_obsolete(upgrade, *ids_of(upgrade.rollback_snapshot)))


def next_lineage(o: Observation) -> int:
    """Return the number of a lineage that is to be opened: one that nobody has begun to make."""
    status = o.app.status
    used = status.upgrade.last_lineage if status.upgrade is not None else 0
    return max(lineage_of(o), used) + 1


def version_held(spec: StreamingAppSpec, stable: StableSpec | None) -> StreamingAppSpec | None:
    """Return a spec with a stable version in it, None if there is none, or nothing can be made of what is stored."""
    if stable is None:
        return None
    try:
        return held_version(spec, stable)
    except ValueError:
        return None  # by a newer operator, or by somebody's hand, or a secret of it is gone


def rival_of(o: Observation, stable: StableSpec | None) -> str:
    """Return who is in the way of a stable version; whoever is in another store than the version's is not."""
    return o.rival if stable is None or has_same_store(o.app.spec, stable) else ""


def secret_gone(spec: StreamingAppSpec, version: StableSpec) -> str:
    """Return the field of a recorded version that was a secret, and that the spec has no more; empty if it has all."""
    try:
        held_version(spec, version)
    except ValueError as error:
        return error.field if isinstance(error, SecretGoneError) else ""
    return ""


def recorded(spec: StreamingAppSpec, version: StableSpec | None) -> StableSpec | None:
    """Return a version as this operator records it: an earlier one left its secrets in.

    Where the spec has one of them no more, it stays: a rollback that is under way needs it.
    """
    if version is None or version.spec == (shown := without_secrets(version.spec)):
        return version
    without = replace(version, spec=shown)
    return version if secret_gone(spec, without) else without


def with_recorded_versions(spec: StreamingAppSpec, upgrade: UpgradeStatus | None) -> UpgradeStatus | None:
    """Return a record with its versions, the previous one and the one under test, as this operator records them."""
    if upgrade is None:
        return None
    tested = recorded(spec, StableSpec(spec_hash=upgrade.to_spec_hash, spec=upgrade.to_spec))
    assert tested is not None
    return replace(upgrade, previous=recorded(spec, upgrade.previous), to_spec=tested.spec)


def stable_now(o: Observation, now: float) -> StableSpec:
    """Return the spec as one that has just shown that it is stable."""
    return StableSpec(
        spec_hash=o.spec_hash,
        spec=recorded_version(o.app.spec),
        lineage=o.app.status.lineage,
        stable_time=time_from_seconds(now),
    )


def seconds_since(start: datetime | None, now: float) -> float:
    """Return how long ago that was, 0 if it was not; a clock that was set back makes everybody wait longer, at most."""
    return max(0.0, now - start.timestamp()) if start is not None else 0.0


def seconds_in_phase(upgrade: UpgradeStatus, now: float) -> float:
    """Return how long the record has been in its phase."""
    return seconds_since(upgrade.phase_start_time, now)


def seconds_to_hear(o: Observation, upgrade: UpgradeStatus, now: float) -> float:
    """Return for how long an agent could have reported to this process what the phase is about.

    Another process that decided before may have heard it; what it heard is not known here.
    """
    deciding = now - o.deciding_since if o.deciding_since <= now else float("inf")
    return min(seconds_in_phase(upgrade, now), deciding)


def seconds_under_test(upgrade: UpgradeStatus, now: float) -> float:
    """Return how long a version has had to show that it is stable; without input it could not."""
    return 0.0 if upgrade.idle_start_time is not None else seconds_in_phase(upgrade, now)


def find_report(o: Observation, snapshot: str) -> SnapshotReport | None:
    """Return what the driver that runs now reports of a snapshot."""
    reports = o.agent.report.snapshots if o.agent is not None else ()
    return next((report for report in reports if report.id == snapshot), None)


def report_of_copy(o: Observation, upgrade: UpgradeStatus) -> SnapshotReport | None:
    """Return what the driver that runs now reports of the copy of an upgrade, None also if that has none."""
    return find_report(o, upgrade.rollback_snapshot.copy) if upgrade.rollback_snapshot is not None else None


def takes_orders(o: Observation) -> bool:
    """Return whether a driver of this application runs and its agent answers."""
    driver = o.driver
    if driver is None or driver.terminating or o.agent is None or driver.app_uid != o.app.metadata.uid:
        return False
    return o.agent.report.state is DriverState.RUNNING


def may_be_heard_yet(o: Observation) -> bool:
    """Return whether the agent of a driver that runs was not heard yet, and nobody knows that it is silent.

    An operator that has just begun to decide has heard nobody, and finds the edits that were made meanwhile.
    """
    driver = o.driver
    if driver is None or o.agent is not None or o.silence or has_other_key(o, driver):
        return False
    return driver.running and driver.ready and not driver.terminating and driver.app_uid == o.app.metadata.uid


def runs_ready(o: Observation) -> bool:
    """Return whether the driver runs with all its queries, by its agent's word or else by the kubelet's."""
    driver, report = o.driver, o.agent.report if o.agent is not None else None
    if driver is None or driver.terminating or not driver.running:
        return False
    return driver.ready if report is None else report.state is DriverState.RUNNING and report.ready


def missing_queries(o: Observation, upgrade: UpgradeStatus, now: float) -> tuple[str, ...]:
    """Return the queries of the previous version that the new one has not started, as long as they are waited for.

    After the gate's timeout they count as dropped: a new version may have fewer.
    """
    waited = seconds_in_phase(upgrade, now) >= o.app.spec.upgrade.timeout_seconds
    return () if waited else unstarted_queries(o, upgrade)


def unstarted_queries(o: Observation, upgrade: UpgradeStatus) -> tuple[str, ...]:
    """Return the queries of the previous version that the process which runs now has not started."""
    if o.agent is None:
        return ()
    started = {query.name for query in o.agent.report.queries}
    return tuple(name for name in upgrade.queries if name not in started)


def failed_queries(o: Observation) -> tuple[str, ...]:
    """Return the queries that an exception ended and nobody has started again; soon the driver ends for them."""
    return tuple(query.name for query in o.agent.report.queries if query.failed) if o.agent is not None else ()


def active_queries(o: Observation) -> tuple[QueryReport, ...]:
    """Return the queries that run."""
    return tuple(query for query in o.agent.report.queries if query.active) if o.agent is not None else ()
