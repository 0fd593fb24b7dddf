"""An entry of the registry of reasons. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidegate_spark.contract.reasons import Reason


class Fault(str, Enum):
    """Whose fault it is, and so who can do something about it."""

    NONE = "none"
    """Nothing is wrong."""
    VERSION = "version"
    """The spec, the script, the image: whoever wrote them corrects them."""
    DATA = "data"
    """State or snapshots that are missing or damaged, or records that a source has lost."""
    ENVIRONMENT = "environment"
    """What the application relies on: its storage, its broker, its registry, their credentials."""
    REQUEST = "request"
    """A message, snapshot or export that somebody asked for: whoever sent or created it corrects it."""
    CLUSTER = "cluster"
    """Kubernetes: nodes, quotas, admission, network, Tidegate's own installation."""


class Place(str, Enum):
    """Where a reason is seen; the value is what a person looks at."""

    APP = "conditions of a StreamingApp"
    EVENT = "events"
    UPGRADE = "status.upgrade.reason"
    REHEARSAL = "status.upgrade.rehearsal.cause"
    REPARTITION = "status.upgrade.repartition.cause"
    LAST_EXIT = "status.lastExit.reason and status.restarts.lastReason"
    AUTOSCALING = "status.autoscaling.reason and status.autoscaling.lastScale.reason"
    INSTANCES_IGNORED = "condition InstancesIgnored"
    PLAINTEXT_SECRETS = "condition PlaintextSecrets"
    PERIODS_IGNORED = "condition ExcludedPeriodsIgnored"
    SCHEDULE_INVALID = "condition SnapshotScheduleInvalid"
    OFFSETS_UNUSED = "condition StartingOffsetsUnused"
    CHANNEL = "condition ControlChannelConnected"
    SNAPSHOT = "conditions of a StreamSnapshot"
    VERIFIED = "condition Verified"
    EXPORT = "condition Exported"
    MESSAGE = "conditions of a ControlMessage"
    REPLY = "replies in a control channel"
    WRITER = "exceptions of the control writer"


@dataclass(frozen=True)
class Entry:
    """One reason, in plain text without markup; field paths are written in full."""

    reason: Reason
    fault: Fault
    places: tuple[Place, ...]
    meaning: str
    remedy: str = ""
    """What a person does about it; empty: nothing."""
    after: str = ""
    """What Tidegate does next, by itself; empty: nothing that needs to be said."""
    page: str = ""
    """Page and heading below docs/ that explain it; empty: those of its area."""
    outlasts_rollback: bool = False
    """Whether the previous version fails equally, with whatever state it is given back."""
    start_fixes: bool = True
    """Whether a driver that ended with it may do better when it is started again with the same spec."""
    retried: bool = False
    """Whether a driver that ended for good with it (exit code 0) is started again: the cause is outside of the spec."""


@dataclass(frozen=True)
class Area:
    """Reasons that belong together."""

    title: str
    page: str
    """Page and heading below docs/ of those that name none of their own."""
    entries: tuple[Entry, ...]
