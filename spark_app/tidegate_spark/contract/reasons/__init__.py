"""The reasons of conditions, events and statuses. Standard library only, no I/O.

``areas`` has the meaning, fault, remedy and page of each; :mod:`tidegate_spark.contract.reasons.registry` finds them.
The older Python of stock Spark images can read it.

Design: docs/design/reasons.md.
"""

from __future__ import annotations

from enum import Enum
from typing import NewType, Union


class Reason(str, Enum):
    """One word of the registry; behaves as that word wherever a string is expected."""

    NONE = ""
    UNKNOWN = "Unknown"
    """Any word of a newer runtime that is not known here."""

    # An application and its driver
    RUNNING = "Running"
    PAUSED = "Paused"
    COMPLETED = "Completed"
    STOPPED = "Stopped"
    DRIVER_STARTING = "DriverStarting"
    DRIVER_STOPPING = "DriverStopping"
    DRIVER_NOT_READY = "DriverNotReady"
    AGENT_UNREACHABLE = "AgentUnreachable"
    RESTARTED = "Restarted"
    RESTART_BUDGET_EXHAUSTED = "RestartBudgetExhausted"
    RESTART_POLICY_NEVER = "RestartPolicyNever"
    STALLED = "Stalled"
    FENCED = "Fenced"
    EPOCH_ADOPTED = "EpochAdopted"
    SPEC_CHANGED = "SpecChanged"
    SUSPENDING = "Suspending"
    RESUMING = "Resuming"
    SUSPENDED = "Suspended"
    EARLIER_DRIVER = "EarlierDriver"
    RELAUNCH_DELAYED = "RelaunchDelayed"
    MAIN_NOT_FOUND = "MainNotFound"
    APPLICATION_FAILED = "ApplicationFailed"
    QUERY_REFUSED = "QueryRefused"
    SCRIPT_UNSUPPORTED = "ScriptUnsupported"
    DRIVER_CRASHED = "DriverCrashed"
    OUT_OF_MEMORY = "OutOfMemory"
    DRIVER_LOST = "DriverLost"
    UNKNOWN_TERMINATION = "UnknownTermination"
    INVALID_SPEC = "InvalidSpec"
    CONFIGURATION_TOO_LONG = "ConfigurationTooLong"
    CONFIGURATION_CHANGED = "ConfigurationChanged"
    PLAINTEXT_SECRET = "PlaintextSecret"  # noqa: S105 - a word
    GRACE_PERIOD_EXCEEDED = "GracePeriodExceeded"
    BATCH_GIVEN_UP = "BatchGivenUp"
    RESCALED = "Rescaled"
    CHECKPOINT_REDIRECTED = "CheckpointRedirected"
    CONFIGURATION_IGNORED = "ConfigurationIgnored"
    CHECKPOINT_CLASS_MISSING = "CheckpointClassMissing"

    # Queries, by their sources, sinks and triggers
    STARTS_EMPTY = "StartsEmpty"
    TABLE_LOCATION = "TableLocation"
    CONTINUOUS_TRIGGER = "ContinuousTrigger"
    REAL_TIME_TRIGGER = "RealTimeTrigger"
    UNNAMED_QUERY = "UnnamedQuery"

    # Pods, nodes and the API server
    EXECUTORS_MISSING = "ExecutorsMissing"
    EXECUTORS_FAILING = "ExecutorsFailing"
    EXECUTORS_LOST = "ExecutorsLost"
    EPHEMERAL_STORAGE_EXCEEDED = "EphemeralStorageExceeded"
    DISK_FULL = "DiskFull"
    EXECUTORS_LINGER = "ExecutorsLinger"
    EXECUTORS_STOPPING = "ExecutorsStopping"
    NODE_TAINTED = "NodeTainted"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_REFUSED = "ContainerRefused"
    INIT_FAILED = "InitFailed"
    UNSCHEDULABLE = "Unschedulable"
    REFERENCE_MISSING = "ReferenceMissing"
    VOLUME_NOT_MOUNTED = "VolumeNotMounted"
    SANDBOX_FAILED = "SandboxFailed"
    IMAGE_PULLING = "ImagePulling"
    POD_NOT_STARTING = "PodNotStarting"
    LAUNCH_REFUSED = "LaunchRefused"
    WRITE_REFUSED = "WriteRefused"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    POD_NAME_TAKEN = "PodNameTaken"
    ACCESS_NAME_TAKEN = "AccessNameTaken"
    DRIVER_NOT_GONE = "DriverNotGone"
    POD_NOT_GONE = "PodNotGone"

    # Storage, broker and what else an application relies on
    STORAGE_CONFLICT = "StorageConflict"
    STORAGE_OWNED = "StorageOwned"
    NEWER_FORMAT = "NewerFormat"
    CLAIM_DAMAGED = "ClaimDamaged"
    NOTES_DAMAGED = "NotesDamaged"
    NOTHING_TO_ADOPT = "NothingToAdopt"
    STORAGE_EMPTY = "StorageEmpty"
    STORAGE_OLDER = "StorageOlder"
    LINEAGE_NOT_EMPTY = "LineageNotEmpty"
    PROTOCOL_MISMATCH = "ProtocolMismatch"
    BUCKET_NOT_FOUND = "BucketNotFound"
    CREDENTIALS_MISSING = "CredentialsMissing"
    CREDENTIALS_REJECTED = "CredentialsRejected"
    CREDENTIALS_EXPIRED = "CredentialsExpired"
    STORAGE_UNAVAILABLE = "StorageUnavailable"
    STORAGE_THROTTLED = "StorageThrottled"
    CHECKPOINT_FILE_MISSING = "CheckpointFileMissing"
    STORAGE_UNSUITABLE = "StorageUnsuitable"
    CONNECTOR_MISSING = "ConnectorMissing"
    BROKER_UNAVAILABLE = "BrokerUnavailable"
    SOURCE_DATA_LOST = "SourceDataLost"
    DEPENDENCY_UNAVAILABLE = "DependencyUnavailable"

    # Deletion
    RELEASED = "Released"
    REHEARSAL_STOPPING = "RehearsalStopping"
    REPARTITION_STOPPING = "RepartitionStopping"
    ORIGIN_RELEASING = "OriginReleasing"
    ORIGIN_STILL_HELD = "OriginStillHeld"
    FINAL_SNAPSHOT = "FinalSnapshot"
    FINAL_SNAPSHOT_MISSING = "FinalSnapshotMissing"
    SNAPSHOTS_RETAINED = "SnapshotsRetained"
    STORAGE_PURGING = "StoragePurging"
    PURGE_FAILED = "PurgeFailed"
    STORAGE_PURGED = "StoragePurged"
    STORAGE_RETAINED = "StorageRetained"

    # Upgrades, rehearsals, repartitions and rollbacks
    UPGRADE_COPYING = "UpgradeCopying"
    UPGRADE_REHEARSING = "UpgradeRehearsing"
    UPGRADE_STOPPING = "UpgradeStopping"
    UPGRADE_REPARTITIONING = "UpgradeRepartitioning"
    UPGRADE_REPARTITIONED = "UpgradeRepartitioned"
    UPGRADE_GATE = "UpgradeGate"
    UPGRADE_COMPLETED = "UpgradeCompleted"
    UPGRADE_FAILED = "UpgradeFailed"
    UPGRADE_ROLLING_BACK = "UpgradeRollingBack"
    UPGRADE_ROLLED_BACK = "UpgradeRolledBack"
    UPGRADE_REFUSED = "UpgradeRefused"
    UPGRADE_WITHDRAWN = "UpgradeWithdrawn"
    UPGRADING = "Upgrading"
    UPGRADE_TIMEOUT = "UpgradeTimeout"
    LAUNCHED = "Launched"
    INPUT_ARRIVED = "InputArrived"
    STABLE = "Stable"
    COPIED = "Copied"
    COPY_REMOVED = "CopyRemoved"
    DRIVER_GONE = "DriverGone"
    STATE_ABANDONED = "StateAbandoned"
    ABANDON_STATE_UNCONFIRMED = "AbandonStateUnconfirmed"
    STATE_MISSING = "StateMissing"
    ROLLBACK_REQUESTED = "RollbackRequested"
    ROLLBACK_IGNORED = "RollbackIgnored"
    ROLLBACK_SNAPSHOT_LOST = "RollbackSnapshotLost"
    SECRET_NOT_RECORDED = "SecretNotRecorded"  # noqa: S105 - a word
    SPEC_REVERTED = "SpecReverted"
    SUPERSEDED = "Superseded"
    STARTING_OFFSETS_UNUSED = "StartingOffsetsUnused"
    REHEARSAL_PASSED = "RehearsalPassed"
    REHEARSAL_FAILED = "RehearsalFailed"
    REHEARSAL_INCONCLUSIVE = "RehearsalInconclusive"
    PLAN_INCOMPATIBLE = "PlanIncompatible"
    STATE_SCHEMA = "StateSchema"
    STATE_NOT_COMPARED = "StateNotCompared"
    START_FAILED = "StartFailed"
    STATE_INCOMPATIBLE = "StateIncompatible"
    NO_COPY = "NoCopy"
    NO_INPUT = "NoInput"
    NO_ROOM = "NoRoom"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    STATE_PARTITIONS_KEPT = "StatePartitionsKept"
    REPARTITIONED = "Repartitioned"
    SPARK_TOO_OLD = "SparkTooOld"
    UNSUPPORTED_PROVIDER = "UnsupportedProvider"
    UNSUPPORTED_OPERATOR = "UnsupportedOperator"
    STATE_IN_ONE_PLACE = "StateInOnePlace"
    STATE_UNREADABLE = "StateUnreadable"
    BATCH_UNCOMMITTED = "BatchUncommitted"
    SPARK_FAILED = "SparkFailed"
    STATE_DIFFERS = "StateDiffers"
    FILE_SINK_ROLLED_BACK = "FileSinkRolledBack"
    FILE_SINK_CONTINUED = "FileSinkContinued"
    SOURCE_FILES_CLEANED = "SourceFilesCleaned"
    SOURCE_FILES_MISSING = "SourceFilesMissing"

    # Snapshots and forks
    APP_NOT_FOUND = "AppNotFound"
    APP_NOT_STARTED = "AppNotStarted"
    APP_NOT_RUNNING = "AppNotRunning"
    APP_UNREADABLE = "AppUnreadable"
    APP_DELETING = "AppDeleting"
    APP_REPLACED = "AppReplaced"
    TOO_MANY_SNAPSHOTS = "TooManySnapshots"
    ORDERED = "Ordered"
    COPYING = "Copying"
    WAITING = "Waiting"
    ORDER_REFUSED = "OrderRefused"
    POD_STARTING = "PodStarting"
    POD_RUNNING = "PodRunning"
    POD_REPLACED = "PodReplaced"
    POD_STOPPING = "PodStopping"
    SNAPSHOT_POD_FAILED = "SnapshotPodFailed"
    NO_REPORT = "NoReport"
    NOTHING_COMMITTED = "NothingCommitted"
    BATCH_LOST = "BatchLost"
    CLEANED_TOO_FAST = "CleanedTooFast"
    UNREADABLE_CHECKPOINT = "UnreadableCheckpoint"
    CATALOG_LOST = "CatalogLost"
    DISPOSED_MEANWHILE = "DisposedMeanwhile"
    SNAPSHOT_MISSING = "SnapshotMissing"
    SNAPSHOT_DAMAGED = "SnapshotDamaged"
    SNAPSHOT_GONE = "SnapshotGone"
    INTERNAL_ERROR = "InternalError"
    DISPOSING = "Disposing"
    NEEDED_BY_FORK = "NeededByFork"
    HELD = "Held"
    NOT_DISPOSED = "NotDisposed"
    WHOLE = "Whole"
    SNAPSHOT_NOT_READY = "SnapshotNotReady"
    SNAPSHOT_NOT_FOUND = "SnapshotNotFound"
    SNAPSHOT_FAILED = "SnapshotFailed"
    SNAPSHOT_DELETING = "SnapshotDeleting"
    SNAPSHOT_UNREADABLE = "SnapshotUnreadable"
    SNAPSHOT_UNUSABLE = "SnapshotUnusable"
    STARTED_FROM_SNAPSHOT = "StartedFromSnapshot"
    SCHEDULE_INVALID = "ScheduleInvalid"
    SNAPSHOT_REFUSED = "SnapshotRefused"
    SNAPSHOT_NAME_TAKEN = "SnapshotNameTaken"
    SNAPSHOT_VERIFIED = "SnapshotVerified"
    SNAPSHOT_NOT_VERIFIED = "SnapshotNotVerified"
    SNAPSHOT_EXPIRED = "SnapshotExpired"
    SNAPSHOT_DISPOSED = "SnapshotDisposed"
    SNAPSHOT_RETAINED = "SnapshotRetained"

    # Exports of state
    STATE_NOT_FOUND = "StateNotFound"
    FORMAT_UNSUITABLE = "FormatUnsuitable"
    EXPORT_EXISTS = "ExportExists"
    EXPORT_FAILED = "ExportFailed"
    EVICTED = "Evicted"
    CANCELLED = "Cancelled"
    SNAPSHOT_EXPORTED = "SnapshotExported"
    SNAPSHOT_NOT_EXPORTED = "SnapshotNotExported"

    # Control messages, and control channels from CONNECTED on
    APP_SUSPENDED = "AppSuspended"
    OFFERED = "Offered"
    QUEUED = "Queued"
    LOGGED = "Logged"
    NO_QUERY_LISTENS = "NoQueryListens"
    IN_FORCE = "InForce"
    APPLIED = "Applied"
    SNAPSHOT_TAKEN = "SnapshotTaken"
    EXPORTING = "Exporting"
    SNAPSHOT_DELETED = "SnapshotDeleted"
    HANDLER_FAILED = "HandlerFailed"
    SPARK_REFUSED = "SparkRefused"
    UNKNOWN_TYPE = "UnknownType"
    INVALID_PAYLOAD = "InvalidPayload"
    PAYLOAD_TOO_LARGE = "PayloadTooLarge"
    TOO_MANY_MESSAGES = "TooManyMessages"
    REJECTED = "Rejected"
    MODEL_NOT_FOUND = "ModelNotFound"
    MODEL_DAMAGED = "ModelDamaged"
    MODEL_NOT_ALLOWED = "ModelNotAllowed"
    MODEL_TOO_LARGE = "ModelTooLarge"
    MESSAGE_TIMED_OUT = "MessageTimedOut"
    EXPIRED = "Expired"
    MESSAGE_LOST = "MessageLost"
    MESSAGE_REFUSED = "MessageRefused"
    NOT_SENT_HERE = "NotSentHere"
    ROLLED_BACK = "RolledBack"
    TYPE_NOT_ALLOWED = "TypeNotAllowed"
    TOO_MANY_OPEN = "TooManyOpen"
    INVALID_EVENT = "InvalidEvent"
    EVENT_TOO_LARGE = "EventTooLarge"
    INVALID_EXPIRES = "InvalidExpires"
    UNSUPPORTED_CONTENT_TYPE = "UnsupportedContentType"
    CONNECTED = "Connected"
    CONNECTING = "Connecting"
    NO_DRIVER = "NoDriver"
    CHANNEL_UNAVAILABLE = "ChannelUnavailable"
    CHANNEL_CREDENTIALS_MISSING = "ChannelCredentialsMissing"
    CHANNEL_CREDENTIALS_REJECTED = "ChannelCredentialsRejected"
    CHANNEL_MISSING = "ChannelMissing"
    CHANNEL_IN_USE = "ChannelInUse"
    CHANNEL_MISCONFIGURED = "ChannelMisconfigured"
    CHANNEL_CONNECTOR_MISSING = "ChannelConnectorMissing"
    CONTROL_LOG_UNAVAILABLE = "ControlLogUnavailable"
    CONTROL_REPLIES_REFUSED = "ControlRepliesRefused"
    CONTROL_CHANNEL_CONNECTED = "ControlChannelConnected"
    CONTROL_MESSAGES_LOST = "ControlMessagesLost"

    # The autoscaler
    STEADY = "Steady"
    SCALE_UP = "ScaleUp"
    SCALE_UP_SOON = "ScaleUpSoon"
    SCALE_DOWN = "ScaleDown"
    SCALE_DOWN_SOON = "ScaleDownSoon"
    OUT_OF_BOUNDS = "OutOfBounds"
    EXCLUDED_PERIOD = "ExcludedPeriod"
    MEASURING = "Measuring"
    RATE_UNKNOWN = "RateUnknown"
    ROWS_UNKNOWN = "RowsUnknown"
    NOT_RUNNING = "NotRunning"
    UPGRADE_UNDER_WAY = "UpgradeUnderWay"
    AT_MAXIMUM = "AtMaximum"
    PARTITIONS_CEILING = "PartitionsCeiling"
    EXECUTORS_IDLE = "ExecutorsIdle"
    BATCHES_LIMITED = "BatchesLimited"
    QUOTA_REACHED = "QuotaReached"
    INEFFECTIVE_SCALING = "IneffectiveScaling"
    AUTOSCALED = "Autoscaled"
    INSTANCES_IGNORED = "InstancesIgnored"
    AUTOSCALER_ACTIVE = "AutoscalerActive"

    __hash__ = str.__hash__

    def __str__(self) -> str:
        """Return the word itself, as in a message or a label."""
        return self.value

    def __format__(self, spec: str) -> str:
        """Return the word itself, as in an f-string."""
        return format(self.value, spec)

    @classmethod
    def _missing_(cls, value: object) -> Reason | None:
        # A runtime of one protocol before uses the words of then, and a newer one may use more than are known here.
        return _FORMER.get(value, cls.UNKNOWN) if isinstance(value, str) else None


_FORMER = {
    "FormatUnfit": Reason.FORMAT_UNSUITABLE,
    "Memory": Reason.OUT_OF_MEMORY,
    "TimeLimit": Reason.DEADLINE_EXCEEDED,
    "Dependency": Reason.DEPENDENCY_UNAVAILABLE,
    "Start": Reason.START_FAILED,
    "State": Reason.STATE_INCOMPATIBLE,
    "Plan": Reason.PLAN_INCOMPATIBLE,
    "Exception": Reason.APPLICATION_FAILED,
    "SecretNameTaken": Reason.LAUNCH_REFUSED,
    "GateOverrun": Reason.UPGRADE_TIMEOUT,
}

ForeignReason = NewType("ForeignReason", str)
"""A word that is not ours: an application gives its messages reasons of its own, and a newer runtime may know more."""

AnyReason = Union[Reason, ForeignReason]  # noqa: UP007 - an alias, which the older Python evaluates


def reason_from(word: str) -> AnyReason:
    """Return the reason that a stored or reported word is, in today's words; one that is not known as it is."""
    reason = Reason(word)
    return ForeignReason(word) if reason is Reason.UNKNOWN and word != reason.value else reason
