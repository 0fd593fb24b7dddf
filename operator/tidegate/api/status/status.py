"""The status of a StreamingApp. No I/O."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from tidegate.api.spec import UpgradeMode
from tidegate.api.status.autoscaling_status import AutoscalingStatus
from tidegate.api.status.bounds import within_bounds
from tidegate.api.status.repartition_status import RepartitionStatus
from tidegate_spark.contract.reasons import Reason


class Phase(StrEnum):
    """One word for where the application is."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    STOPPING = "Stopping"
    REPARTITIONING = "Repartitioning"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DELETING = "Deleting"


class Condition(Struct, frozen=True, kw_only=True, rename="camel"):
    """One condition in the sense of Kubernetes; ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str
    last_transition_time: datetime
    message: str = ""
    observed_generation: int = 0


class DriverStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The driver of the current epoch."""

    pod_name: str = ""
    restarts: int = 0
    start_time: datetime | None = None


class LastExit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How the last driver process ended."""

    reason: str = ""
    exception: str = ""
    message: str = ""
    exit_code: int | None = None
    completion_time: datetime | None = None


class RestartsStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Ends of the driver that nobody asked for; ``recent_failure_times`` are those that count against the budget."""

    total: int = 0
    last_reason: str = ""
    recent_failure_times: tuple[datetime, ...] = ()


class QueryStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One streaming query; rates in rows per second, sizes in bytes. ``batch_id`` is the last committed batch.

    One with ``starts_empty`` is none that Spark can continue: its batches begin at 0 whenever the driver starts.
    """

    name: str
    batch_id: int | None = None
    starts_empty: bool = False
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    last_commit_time: datetime | None = None


class ExecutorsStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """Executors wanted, those registered with the driver, and those beside them that end their tasks and go.

    The last are not there if there are none. ``summary`` is for the column of ``kubectl get``: running of wanted.
    """

    wanted: int = 0
    running: int = 0
    summary: str = ""
    leaving: int | msgspec.UnsetType = msgspec.UNSET


class SnapshotBatch(Struct, frozen=True, kw_only=True, rename="camel"):
    """The batch after which a query is in a snapshot."""

    name: str
    batch_id: int


class LastSnapshot(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The newest complete StreamSnapshot of the application."""

    name: str
    id: str
    ready_time: datetime | None = None
    queries: tuple[SnapshotBatch, ...] = ()


class ScheduleStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How far the schedule of snapshots is: ``schedule`` as it is followed, ``start_time`` since when.

    ``last_schedule_time`` is the last time of it that was dealt with: a snapshot was taken, or none was needed.
    """

    schedule: str = ""
    start_time: datetime | None = None
    last_schedule_time: datetime | None = None
    next_schedule_time: datetime | None = None
    message: str = ""


class EarlierRollbackSnapshot(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The pin of ``lineage`` that a rollback was to start from, of which nobody knows whether it did.

    ``batches``: the newest of each query that is known of ``lineage``.
    """

    id: str
    lineage: int
    batches: tuple[SnapshotBatch, ...] = ()


class StartedFrom(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The snapshot that ``lineage`` starts from, so that it is found when its resource is gone.

    ``uri`` is the place of the application whose snapshot it is, ``app_uid`` that application. ``started``: a driver
    has run on it, so the snapshot is not needed any more. ``credentials_secret_name`` is that of an imported snapshot.
    ``snapshot_lineage``: of an upgrade that is undone, the lineage whose pin the snapshot is. ``fallbacks``: what the
    state starts from if that lineage was never filled, newest first. ``batches``: the newest of each query that is
    known of it, which a storage has that is no older copy. ``begun`` and ``of_lineage`` are former names, which an
    earlier operator wrote: read by the properties, and written no more.
    """

    snapshot_name: str
    id: str
    app_uid: str
    lineage: int
    uri: str
    endpoint: str = ""
    region: str = "us-east-1"
    path_style_access: bool = False
    credentials_secret_name: str = ""
    started: bool = False
    snapshot_lineage: int = 0
    fallbacks: tuple[EarlierRollbackSnapshot, ...] = ()
    batches: tuple[SnapshotBatch, ...] = ()
    offsets: str = ""
    """Of topics that an upgrade has read from elsewhere than where the snapshot ends."""
    follows_epoch: int = 0
    """Of a lineage that an upgrade or its rollback opens, the newest launch that was known then; 0: of an earlier
    operator. A later one in the storage shows that the status was an older one, and what was to be undone is not."""
    begun: bool = False
    of_lineage: int = 0

    @property
    def has_started(self) -> bool:
        """Whether a driver has run on it, by whichever name that was written."""
        return self.started or self.begun

    @property
    def undone_lineage(self) -> int:
        """The lineage whose rollback snapshot it is, 0 if it is none, by whichever name that was written."""
        return self.snapshot_lineage or self.of_lineage


class StableSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A version that has passed its gate: what of the spec makes the version, as JSON, and where and when it passed."""

    spec_hash: str
    spec: str
    lineage: int = 0
    stable_time: datetime | None = None


class UpgradePhase(StrEnum):
    """How far an upgrade is."""

    COPYING = "Copying"
    REHEARSING = "Rehearsing"
    STOPPING = "Stopping"
    REPARTITIONING = "Repartitioning"
    GATE = "Gate"
    COMPLETED = "Completed"
    FAILED = "Failed"
    ROLLING_BACK = "RollingBack"
    ROLLED_BACK = "RolledBack"
    REFUSED = "Refused"
    WITHDRAWN = "Withdrawn"


class RehearsedQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many batches of a query were rehearsed."""

    name: str
    committed: int


class RehearsalStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How the new version did on a copy of the state, before the previous version was stopped.

    ``result`` and ``cause`` are words of the contract with the runtime; empty as long as there is none.
    """

    result: str = ""
    cause: str = ""
    batches: tuple[RehearsedQuery, ...] = ()
    message: str = ""
    start_time: datetime | None = None
    completion_time: datetime | None = None


class RollbackSnapshot(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The snapshot that an upgrade can be undone to: of ``lineage``, where the previous version ended.

    ``partitions`` is the number that its state has, 0 if that is not known.
    ``copy`` is one of an earlier batch, taken while that version still ran, so that little is left to be copied.
    ``batches`` are known once it is complete; ``lost_message`` says why it never will be, as ``lost``, its former name.
    ``fallbacks`` is what ``lineage`` was to start with, newest first, where nobody knows whether it did.
    """

    id: str
    lineage: int
    partitions: int = 0
    copy: str = ""
    batches: tuple[SnapshotBatch, ...] = ()
    lost_message: str = ""
    fallbacks: tuple[EarlierRollbackSnapshot, ...] = ()
    lost: str = ""

    @property
    def loss(self) -> str:
        """Why it never will be complete, empty if it may, by whichever name that was written."""
        return self.lost_message or self.lost


class UpgradeStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last change of version: what is recorded here was decided, and is done after it was written.

    ``number`` counts them. ``lineage`` is that of the next launch. ``to_spec`` is the new version, as a stable one is
    recorded, from the stop of the previous version until the new one is stable or given up; an earlier operator
    recorded none. ``epoch`` is the first launch of the new version or, of a rollback, of the previous version; 0 before
    it. ``previous`` is what the new version, if stable, can still be rolled back to. ``rehearsal`` is there if asked
    for, ``repartition`` if state is to have another number of partitions; ``last_lineage`` is the highest number that
    one was made under, whole or not. ``obsolete`` are ids of snapshots that are to be disposed of. ``idle_start_time``:
    since when the version under test has no input. ``queries`` are the names that the previous version has.
    ``rollback_to`` is what the spec's field of this name said when it was last answered.
    """

    phase: UpgradePhase
    mode: UpgradeMode
    number: int
    from_spec_hash: str
    to_spec_hash: str
    to_spec: str = ""
    lineage: int
    start_time: datetime | None = None
    phase_start_time: datetime | None = None
    idle_start_time: datetime | None = None
    reason: str = ""
    message: str = ""
    epoch: int = 0
    rollback_snapshot: RollbackSnapshot | None = None
    previous: StableSpec | None = None
    rehearsal: RehearsalStatus | None = None
    repartition: RepartitionStatus | None = None
    last_lineage: int = 0
    queries: tuple[str, ...] = ()
    rollback_to: str = ""
    starting_offsets: str = ""
    """Of topics that the new version reads from there on, in a lineage that starts with the previous one's state."""
    obsolete: tuple[str, ...] = ()

    @property
    def is_rolled_back(self) -> bool:
        """Whether the new version was rolled back, or is being: the previous one's state is taken up again."""
        return self.phase in (UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK)

    @property
    def is_rejected(self) -> bool:
        """Whether the new version is not tried again before another one was asked for: it failed, or is unwanted.

        Where another one was asked for instead, nothing was wrong with it, and whoever asks for it now asks again.
        """
        return self.is_rolled_back and self.reason not in (Reason.SUPERSEDED, Reason.SPEC_REVERTED)


class ControlStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What came through a channel since the application began, and what became of it."""

    channel: str
    received: int = 0
    applied: int = 0
    failed: int = 0
    rejected: int = 0
    expired: int = 0
    rolled_back: int = 0


class StreamingAppStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the operator observed and decided.

    ``epoch`` counts launches of the application (0: never launched), ``lineage`` the histories of its state.
    ``state_partitions`` is the number that the lineage's state has, 0 if that is not known.
    ``store`` is the one in which the application was launched last, as ``store_identity`` has it.
    ``batch`` and ``input_rows_per_second`` sum the queries up for the columns of ``kubectl get``; ``batch`` stays when
    the driver that committed it goes. ``batches`` is the newest one of each query that is known in ``lineage``: a
    storage without them is an older copy. ``ignored_starting_offsets`` is a hash of ``spec.upgrade.startingOffsets``
    that have no effect until they are set again: they were there before a status, or before the lineage that they name,
    or that one was left without them.
    """

    phase: Phase | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    epoch: int = 0
    lineage: int = 0
    state_partitions: int = 0
    applied_spec_hash: str = ""
    store: str = ""
    driver: DriverStatus | None = None
    last_exit: LastExit | None = None
    restarts: RestartsStatus | None = None
    queries: tuple[QueryStatus, ...] = ()
    more_queries: int = 0
    batch: int | None = None
    batches: tuple[SnapshotBatch, ...] = ()
    input_rows_per_second: int | None = None
    executors: ExecutorsStatus | None = None
    selector: str = ""
    start_from: StartedFrom | None = None
    ignored_starting_offsets: str = ""
    last_snapshot: LastSnapshot | None = None
    last_stable: StableSpec | None = None
    upgrade: UpgradeStatus | None = None
    snapshots: ScheduleStatus | None = None
    control: ControlStatus | None = None
    autoscaling: AutoscalingStatus | None = None

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this type, None if there is none."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def known_batches(self) -> dict[str, int]:
        """Return the newest batch of each query that is known to be committed in the lineage.

        An earlier operator wrote down no list for this; its queries have their last batch, also of an application
        that is suspended.
        """
        if self.batches:
            return {query.name: query.batch_id for query in self.batches}
        queries = (query for query in self.queries if not query.starts_empty)
        return {query.name: query.batch_id for query in queries if query.batch_id is not None}


def encode_status(status: StreamingAppStatus) -> dict[str, Any]:
    """Return the status as the API server stores it: camelCase, times as RFC 3339, without what has its default.

    Equal values give equal mappings, so a comparison shows whether a write is needed.
    """
    encoded: dict[str, Any] = within_bounds("status", msgspec.to_builtins(status))
    return encoded
