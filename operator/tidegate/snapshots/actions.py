"""The actions on a StreamSnapshot, as a closed union of values, carried out as :mod:`tidegate.app.actions`. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from tidegate.api.stream_snapshot import StreamSnapshot, StreamSnapshotStatus
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import AnyReason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders


@dataclass(frozen=True, slots=True)
class WriteSnapshotStatus:
    """Write the status."""

    status: StreamSnapshotStatus


@dataclass(frozen=True, slots=True)
class GiveOrders:
    """Give orders to the agent of a running driver; what is in them is in the status already."""

    pod: PodRecord
    orders: SnapshotOrders


@dataclass(frozen=True, slots=True)
class CreateSnapshotPod:
    """Create the pod that does what no driver can."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteSnapshotPod:
    """Remove it."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class DeleteSnapshot:
    """Delete the resource, as somebody might; what becomes of the files is decided when that is seen."""

    snapshot: StreamSnapshot


@dataclass(frozen=True, slots=True)
class CountVerification:
    """Count a snapshot that was read back, by what the condition Verified says: whole, damaged or unknown."""

    result: str


@dataclass(frozen=True, slots=True)
class CountExport:
    """Count an export that has ended."""

    complete: bool


@dataclass(frozen=True, slots=True)
class CountTakenByPod:
    """Count a snapshot that no driver took, whose agent would have."""

    seconds: float
    """From when it was begun until it was complete."""
    copied: int
    shared: int
    """Bytes that an earlier snapshot had already."""


@dataclass(frozen=True, slots=True)
class ForgetRefusal:
    """Forget that the API server refused a pod: none is needed any more."""


@dataclass(frozen=True, slots=True)
class StampRetention:
    """Note on the resource how long it stays."""

    text: str


Counting: TypeAlias = CountVerification | CountExport | CountTakenByPod
"""Those that change metrics and nothing else."""
SnapshotAction: TypeAlias = (
    AddFinalizer
    | RemoveFinalizer
    | EnsureAccess
    | ForgetRefusal
    | WriteSnapshotStatus
    | GiveOrders
    | CreateSnapshotPod
    | DeleteSnapshotPod
    | DeleteSnapshot
    | StampRetention
    | CountVerification
    | CountExport
    | CountTakenByPod
    | PublishEvent
)


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """What to do now, why, and when to check again; as :class:`tidegate.app.actions.Plan`."""

    rule: str
    reason: AnyReason
    message: str
    actions: tuple[SnapshotAction, ...] = ()
    wake_after: float | None = None
