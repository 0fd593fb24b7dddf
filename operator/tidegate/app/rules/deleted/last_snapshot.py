"""The snapshots of a deleted application: the final one that its spec asks for, and what is noted on others. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.api.lost_status import has_launched, may_have_launched
from tidegate.api.stream_snapshot import SnapshotPhase, goes_with_storage, is_ready
from tidegate.api.streaming_app import DeletionPolicy, Phase
from tidegate.app.actions import ConfirmDriverGone, CreateSnapshot
from tidegate.app.observation import Observation, own_snapshots
from tidegate.app.rules.deleted import deletion_messages
from tidegate.app.rules.schedule import not_created
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.pods.records.faults import has_completed
from tidegate.pods.records.names import driver_pod_name
from tidegate.snapshots.builders.stream_snapshot import build_last, last_name
from tidegate_spark.contract.reasons import Reason


def take_last_snapshot(o: Observation, now: float) -> Verdict | None:
    """Have a snapshot taken when nothing writes any more, and wait until it is complete or has failed for good."""
    if not is_asked_for(o) or _namespace_goes(o):
        return None
    name = last_name(o.app)
    found = next((s for s in own_snapshots(o) if s.metadata.name == name), None)
    if found is None:
        # Also if the newest seems to have all batches: the driver's termination message may be gone with its pod.
        return _begin(o, name, now)
    if found.is_final or found.metadata.deletion_timestamp is not None:
        return None
    if name in o.refused_writes:
        message = deletion_messages.final_snapshot_waits(o.refused_writes[name])
        return Verdict(Phase.DELETING, Health.STALLED, Reason.WRITE_REFUSED, message)
    stalled = found.status.condition(Health.STALLED.value)
    if stalled is not None and stalled.status == "True":
        message = deletion_messages.final_snapshot_waits(deletion_messages.of_snapshot(name, stalled.message))
        return Verdict(Phase.DELETING, Health.STALLED, Reason.FINAL_SNAPSHOT, message)
    return Verdict(Phase.DELETING, Health.RECONCILING, Reason.FINAL_SNAPSHOT, deletion_messages.final_snapshot(name))


def retain_scheduled_snapshots(o: Observation, now: float) -> Verdict | None:
    """Wait until it is noted on no scheduled snapshot any more that it goes with the application's storage.

    Somebody may have changed the policy a moment ago, because a purge did not succeed; what is noted on a snapshot is
    all that is known when the application is gone.
    """
    if o.app.spec.storage.deletion_policy is not DeletionPolicy.RETAIN:
        return None
    going = sorted(s.metadata.name for s in own_snapshots(o) if s.is_final and goes_with_storage(s))
    if not going:
        return None
    # Their own reconciles note it, and wake the application.
    message = deletion_messages.snapshots_retained(len(going), going[0])
    return _waits_for(o, going, Reason.SNAPSHOTS_RETAINED, message)


def mark_purged_snapshots(o: Observation, now: float) -> Verdict | None:
    """Wait until no snapshot is Ready whose files were purged: nobody knows of the purge once the application is gone.

    Scheduled ones that are deleted after it need not say so.
    """
    if not has_completed(o.purge):
        return None
    ready = sorted(s.metadata.name for s in own_snapshots(o) if is_ready(s) and not goes_with_storage(s))
    if not ready:
        return None
    # Their own reconciles note it, and wake the application.
    message = deletion_messages.snapshots_purged(len(ready), ready[0])
    return _waits_for(o, ready, Reason.STORAGE_PURGING, message)


def _waits_for(o: Observation, names: Sequence[str], reason: Reason, message: str) -> Verdict:
    """Wait until something is noted on these snapshots; say so if the API server does not let it be."""
    refused = next((name for name in names if name in o.refused_writes), None)
    if refused is None:
        return Verdict(Phase.DELETING, Health.RECONCILING, reason, message)
    message = deletion_messages.snapshot_waits(o.refused_writes[refused], refused)
    return Verdict(Phase.DELETING, Health.STALLED, Reason.WRITE_REFUSED, message)


def is_asked_for(o: Observation) -> bool:
    """Return whether one is to be taken: not of an application of which no launch is known."""
    return _is_wanted(o) and has_launched(o.app.status)


def _is_wanted(o: Observation) -> bool:
    spec = o.app.spec
    asked = spec.snapshots is not None and spec.snapshots.final_snapshot
    # The API server takes no resource that asks for both; one of an older CRD's would wait for what is then removed.
    return asked and spec.storage.deletion_policy is DeletionPolicy.RETAIN


def missing_event(o: Observation) -> tuple[PublishEvent, ...]:
    """Return the event that the application is deleted without such a snapshot."""
    if not _is_wanted(o) or not may_have_launched(o.app):
        return ()
    name = last_name(o.app)
    found = next((s for s in o.snapshots if s.metadata.name == name), None)
    if found is not None and found.status.phase is SnapshotPhase.READY:
        return ()
    ready = found.status.condition(Health.READY.value) if found is not None else None
    lost = "" if has_launched(o.app.status) else deletion_messages.NO_LAUNCH_KNOWN
    message = deletion_messages.final_snapshot_missing(ready.message if ready is not None else lost)
    return (PublishEvent(Reason.FINAL_SNAPSHOT_MISSING, message, True, "last"),)


def _begin(o: Observation, name: str, now: float) -> Verdict:
    refused, left = not_created(o, name, now)
    health, message = Health.RECONCILING, deletion_messages.final_snapshot(name)
    if refused:  # also while it is tried again
        health, message = Health.STALLED, deletion_messages.final_snapshot_waits(refused)
    if left:
        return Verdict(Phase.DELETING, health, Reason.FINAL_SNAPSHOT, message, wake_after=left)
    # A driver that no watch shows goes on with batches that this snapshot would not have.
    gone = (ConfirmDriverGone(driver_pod_name(o.app.metadata.name)),)
    create = CreateSnapshot(build_last(o.app))
    return Verdict(Phase.DELETING, health, Reason.FINAL_SNAPSHOT, message, before=gone, after=(create,))


def _namespace_goes(o: Observation) -> bool:
    refusal = o.memory.snapshot_refusal
    return refusal is not None and refusal.reason == Reason.NAMESPACE_TERMINATING
