"""What an application's state starts from, and which of its snapshots is the newest. No I/O."""

from __future__ import annotations

import msgspec

from tidegate.api.lost_status import may_have_launched
from tidegate.api.stream_snapshot import SnapshotPhase
from tidegate.api.streaming_app import LastSnapshot, Phase, SnapshotBatch, StartedFrom
from tidegate.app.actions import DeleteDriver
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.origin import is_usable, lacks_starting_point, recorded_or_found
from tidegate.app.rules.pods.ends import ended_for_good_with
from tidegate.app.rules.upgrade.adoption import unproven_place
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import RemoveFinalizer
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.protocol import FINALIZER, DriverState
from tidegate_spark.contract.reasons import Reason


def wait_for_origin(o: Observation, now: float) -> Verdict | None:
    """Wait with the first launch until the snapshot is complete: an application never starts from less."""
    start = o.app.spec.start_from
    if (
        o.driver is not None
        or start is None
        or not start.snapshot_name
        or o.app.status.start_from is not None
        or o.app.status.lineage  # it has started before its status was lost: the storage knows what is left to do
        or is_usable(o.origin)
        # It was about to be launched before, so it may have begun, and the status was lost: the storage is asked.
        or may_have_launched(o.app)
    ):
        return None
    # That of an earlier operator: with what is said now, it would say that the application was launched.
    finalizer = (RemoveFinalizer(),) if FINALIZER in o.app.metadata.finalizers else ()
    name, origin = start.snapshot_name, o.origin
    if o.origin_unreadable:
        reason, message = Reason.SNAPSHOT_UNREADABLE, messages.snapshot_unreadable(name, o.app.metadata.namespace)
    elif origin is None:
        reason, message = Reason.SNAPSHOT_NOT_FOUND, messages.snapshot_not_found(name)
    elif origin.metadata.deletion_timestamp is not None:
        reason, message = Reason.SNAPSHOT_DELETING, messages.snapshot_deleting(name)
    elif origin.status.phase is SnapshotPhase.FAILED:
        reason, message = Reason.SNAPSHOT_FAILED, messages.snapshot_failed(name)
    else:
        phase = origin.status.phase.value if origin.status.phase is not None else SnapshotPhase.PENDING.value
        message = messages.snapshot_not_ready(name, phase)
        return Verdict(Phase.PENDING, Health.RECONCILING, Reason.SNAPSHOT_NOT_READY, message, before=finalizer)
    return Verdict(Phase.PENDING, Health.STALLED, reason, message, before=finalizer)


def leave_empty_place(o: Observation, now: float) -> Verdict | None:
    """Start from the snapshot as soon as that is there, where the storage was asked and has nothing.

    An earlier runtime does not distinguish an empty place from one where the application began just now, and would
    start empty in it. Its report is ignored.
    """
    driver = o.driver
    if driver is None or not lacks_starting_point(o):
        return None
    empty, unproven = ended_for_good_with(driver, Reason.STORAGE_EMPTY), unproven_place(o)
    if empty is None and unproven is None:
        return None
    assert o.app.spec.start_from is not None
    name = o.app.spec.start_from.snapshot_name
    if is_usable(o.origin):
        message = messages.starts_from_snapshot_again(driver.name, name)
        gone = (DeleteDriver(driver),)
        return Verdict(Phase.STARTING, Health.RECONCILING, Reason.DRIVER_STARTING, message, after=gone)
    if unproven is None:
        return None  # it is checked again after a while
    message = messages.place_unproven(driver.name, name)
    return Verdict(Phase.FAILED, Health.STALLED, Reason.STORAGE_EMPTY, message)


def build_started_from(o: Observation, verdict: Verdict) -> StartedFrom | None:
    """Return the status's record of the beginning: from the first launch on, and for ever."""
    known = recorded_or_found(o) if verdict.launch else o.app.status.start_from
    if known is None or verdict.launch:
        return known
    runs = o.agent is not None and o.agent.report.state is DriverState.RUNNING
    started = known.has_started or runs or verdict.phase in (Phase.RUNNING, Phase.COMPLETED)
    return msgspec.structs.replace(known, started=started, begun=False)


def build_last_snapshot(o: Observation) -> LastSnapshot | None:
    """Return the newest complete snapshot of the application as its status shows it."""
    found = o.last_snapshot
    if found is None:
        return None
    status = found.status
    return LastSnapshot(
        name=found.metadata.name,
        id=status.snapshot_id,
        ready_time=status.ready_time,
        queries=tuple(SnapshotBatch(name=query.name, batch_id=query.batch_id) for query in status.queries),
    )
