"""The rule for a complete snapshot whose files were purged with the storage of its application. No I/O."""

from __future__ import annotations

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.stream_snapshot import (
    SnapshotPhase,
    goes_with_storage,
    is_ready,
    is_to_be_exported,
    is_to_be_verified,
)
from tidegate.engine.rules.health import Health
from tidegate.snapshots.actions import DeleteSnapshotPod
from tidegate.snapshots.observation import SnapshotObservation, pods_of
from tidegate.snapshots.rules import messages
from tidegate.snapshots.rules.exporting import cut_off
from tidegate.snapshots.rules.verdict import SnapshotVerdict, Verification, forget_refusal
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState


def find_purged(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Call a snapshot gone whose files were purged with its application's storage; it need not be read back for that.

    An export that is asked for ends with it. One that is deleted after the application need not say so.
    """
    if not o.purged or not is_ready(o.snapshot) or goes_with_storage(o.snapshot):
        return None
    message = messages.purged(o.snapshot.app_key[1])
    ended = SnapshotReport(snapshot_id(o.snapshot.metadata), SnapshotState.FAILED, Reason.SNAPSHOT_GONE, message)
    found = Verification("False", Reason.SNAPSHOT_GONE, message, ended)
    going = (pod for pod in pods_of(o) if not pod.terminating)
    gone = SnapshotVerdict(
        SnapshotPhase.FAILED,
        Health.STALLED,
        Reason.SNAPSHOT_GONE,
        message,
        verification=found if is_to_be_verified(o.snapshot) else None,
        after=(*forget_refusal(o), *map(DeleteSnapshotPod, going)),
    )
    if not is_to_be_exported(o.snapshot):
        return gone
    return cut_off(o, gone, messages.export_purged(o.snapshot.app_key[1]), now)
