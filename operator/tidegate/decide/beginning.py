"""What an application's state starts from, if not with nothing, and which of its snapshots is the newest. No I/O."""

from __future__ import annotations

import msgspec

from tidegate.decide import messages
from tidegate.decide.origin import is_usable, recorded_or_found
from tidegate.decide.verdict import Health, Verdict
from tidegate.model.stream_snapshot import SnapshotPhase
from tidegate.model.streaming_app import LastSnapshot, Phase, SnapshotBatch, StartedFrom
from tidegate.observe.observation import Observation
from tidegate_spark.protocol import DriverState
from tidegate_spark.reasons import Reason


def wait_for_origin(o: Observation, now: float) -> Verdict | None:
    """Wait with the first launch until the snapshot is complete: an application never starts from less."""
    start = o.app.spec.start_from
    if (
        o.driver is not None
        or start is None
        or not start.snapshot_name
        or o.app.status.start_from is not None
        or o.app.status.lineage  # it has long begun, and the status was lost: what is left to do the storage knows
        or is_usable(o.origin)
    ):
        return None
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
        return Verdict(Phase.PENDING, Health.RECONCILING, Reason.SNAPSHOT_NOT_READY, message)
    return Verdict(Phase.PENDING, Health.STALLED, reason, message)


def build_beginning(o: Observation, verdict: Verdict) -> StartedFrom | None:
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
