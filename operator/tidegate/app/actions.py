"""The actions on an application, as a closed union of values. No I/O.

They are carried out in the plan's order. The first one that meets a conflict ends the plan and the key is observed
again, so a crash between two actions is just another observation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tidegate.api.streaming_app import StreamingAppStatus
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import AnyReason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders


@dataclass(frozen=True, slots=True)
class EnsureLaunchSecrets:
    """Have the Secrets of a launch: of its agent, and of Spark's ports. What is there already is as it should be."""

    epoch: int


@dataclass(frozen=True, slots=True)
class DeleteLaunchSecrets:
    """Remove those of a launch whose driver is known to be gone."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ConfirmRecord:
    """Look past the cache whether the application's record is still the one that was seen; else look at it again."""


@dataclass(frozen=True, slots=True)
class ConfirmDriverGone:
    """Read the driver pod live; if it is there after all, end the plan. A cache alone never declares a driver dead.

    People's own pod of the name shows that it is gone; one that runs our program and is nobody's may be the driver.
    """

    pod_name: str
    needs_name: bool = False
    """What follows gives the name to a new pod: people's own one is in its way."""


@dataclass(frozen=True, slots=True)
class RecordLaunch:
    """Write the new epoch to status, before there is a pod of that epoch."""

    status: StreamingAppStatus
    unplanned: bool
    """Nobody asked for it: the driver was lost. Counts for the pause before the next one."""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write the status."""

    status: StreamingAppStatus


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create a pod; what for is said by the class, which names it in logs and metrics, and changes nothing else."""

    manifest: dict[str, Any]
    strict: bool = field(default=False, kw_only=True)
    """Fields that the API server does not know are refused; else it drops them without a word."""


@dataclass(frozen=True, slots=True)
class CreateDriver(CreatePod):
    """The driver of an epoch that is recorded."""

    epoch: int
    strict: bool = field(default=True, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreatePurge(CreatePod):
    """Removes the application's storage."""


@dataclass(frozen=True, slots=True)
class CreateOriginRelease(CreatePod):
    """Releases the snapshot from which a deleted application was to start."""


@dataclass(frozen=True, slots=True)
class CreateRehearsal(CreatePod):
    """In it, a new version is rehearsed."""


@dataclass(frozen=True, slots=True)
class CreateRepartition(CreatePod):
    """Repartitions the state; its epoch is recorded."""


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Ask for the end of a pod, with its grace period; which one is said by the class, as for those created."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class DeleteDriver(DeletePod):
    """The driver, which stops its queries at a batch boundary."""


@dataclass(frozen=True, slots=True)
class DeleteExecutor(DeletePod):
    """An executor that an earlier driver process left behind, or that is to go before the storage is treated."""


@dataclass(frozen=True, slots=True)
class DeletePurge(DeletePod):
    """The pod that removes the storage."""


@dataclass(frozen=True, slots=True)
class DeleteOriginRelease(DeletePod):
    """The pod that releases a snapshot."""


@dataclass(frozen=True, slots=True)
class DeleteRehearsal(DeletePod):
    """The pod of a rehearsal."""


@dataclass(frozen=True, slots=True)
class DeleteRepartition(DeletePod):
    """The pod that repartitions the state."""


@dataclass(frozen=True, slots=True)
class ProvideConfiguration:
    """Have the Secret with the long part of a pod's configuration; the pod waits for it, and is its owner."""

    secret: dict[str, Any]
    """Without its owner."""
    pod_name: str
    replace: bool = True
    """Of the pod that was created just now: one that is there already is of an earlier pod, and replaced."""


@dataclass(frozen=True, slots=True)
class SetExecutors:
    """Have the driver run with another number of executors, without a restart."""

    pod: PodRecord
    instances: int


@dataclass(frozen=True, slots=True)
class OrderSnapshots:
    """Give a running driver's agent the orders about an upgrade's snapshots; what is in them is in the status."""

    pod: PodRecord
    orders: SnapshotOrders


@dataclass(frozen=True, slots=True)
class RestoreLabels:
    """Give pods back the labels that they were given, if they are still there: without them no watch reports them."""

    pods: tuple[PodRecord, ...]


@dataclass(frozen=True, slots=True)
class CreateSnapshot:
    """Create a StreamSnapshot of the application, by a name that follows from what it is for."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RememberReported:
    """Remember which of the agent's notices were published."""

    epoch: int
    sequence: int


PodAction: TypeAlias = CreatePod | DeletePod | RestoreLabels | ConfirmDriverGone | ProvideConfiguration
"""Those about pods."""
Action: TypeAlias = (
    AddFinalizer
    | RemoveFinalizer
    | EnsureAccess
    | EnsureLaunchSecrets
    | DeleteLaunchSecrets
    | ConfirmRecord
    | ConfirmDriverGone
    | RecordLaunch
    | WriteStatus
    | CreateDriver
    | ProvideConfiguration
    | DeleteDriver
    | SetExecutors
    | OrderSnapshots
    | DeleteExecutor
    | RestoreLabels
    | CreatePurge
    | DeletePurge
    | CreateOriginRelease
    | DeleteOriginRelease
    | CreateRehearsal
    | DeleteRehearsal
    | CreateRepartition
    | DeleteRepartition
    | CreateSnapshot
    | PublishEvent
    | RememberReported
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, why, and when to check again."""

    rule: str
    """The rule that decided."""
    reason: AnyReason
    message: str
    actions: tuple[Action, ...] = ()
    """Empty: nothing is to be done, for the reason given."""
    wake_after: float | None = None
    """Seconds; None: nothing happens by the passing of time."""
    spec_hash: str = ""
    """Of the version that is in force, which need not be the spec's."""
