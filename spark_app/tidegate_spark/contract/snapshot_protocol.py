"""The contract about snapshots: orders and their results. Standard library only, no I/O.

An order goes to the agent of a running driver, or else to a helper pod; both carry it out alike. Orders are
level-triggered: a lost one is given again, and a known one is not started twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate_spark.contract.json_form import OpenEnum
from tidegate_spark.contract.reasons import Reason

ORDERS_VARIABLE = "TIDEGATE_SNAPSHOT_ORDERS"
"""Environment variable of a snapshot pod's container that holds :class:`SnapshotOrders` as JSON."""

SNAPSHOT_COMMAND = "/v1/snapshots"
"""POST, bearer token, body :class:`SnapshotOrders`: 202 means that each is known and will be carried out."""

PROGRESS_PATH = "/v1/snapshots"
"""GET, at the open port of a snapshot pod: :class:`SnapshotReports`, without offsets. Figures alone, and no secrets."""

EXPORT_FORMATS = ("JSONLines", "CSV", "Parquet")
_FORMER_FORMATS = {"JsonLines": "JSONLines", "Csv": "CSV"}
"""Words of earlier manifests and orders."""


def export_format(word: str) -> str:
    """Return the format that a word is, in today's words.

    Raises:
        ValueError: it is none.
    """
    known = _FORMER_FORMATS.get(word, word)
    if known not in EXPORT_FORMATS:
        raise ValueError(f"{word!r} is none of {', '.join(EXPORT_FORMATS)}")
    return known


LARGEST_ORDERS = 64 * 1024
"""Bytes of one body."""

LONGEST_OFFSETS = 2048
"""Characters of a query's source offsets in a report; longer ones are cut, and say so. The manifest has them whole."""

LONGEST_SPEC = 8192
"""Characters of a version's spec in an order; of a longer one there is the hash alone."""


@dataclass(frozen=True)
class SnapshotOrder:
    """Take this snapshot."""

    id: str
    """``[a-z0-9-]``, at most 63 characters, unique for ever; the same for each attempt at this snapshot."""
    manual: bool = False
    """Asked for by a person: no retention removes it."""
    exact: dict[str, int] = field(default_factory=dict)
    """Query -> batch, if it must be this one."""
    alone: bool = False
    """Of the queries in ``exact`` and of no other; else all others are in it with their newest batches."""
    holders: tuple[str, ...] = ()
    """Who needs it from the first."""
    image: str = ""
    """Of the application, for the manifest."""
    spec_hash: str = ""
    spec: str = ""
    """Which version's state it is, for the manifest: its hash, and what makes it as JSON, without secrets and at most
    :data:`LONGEST_SPEC` long."""


@dataclass(frozen=True)
class ReleaseOrder:
    """Somebody who held a snapshot does not come back for it."""

    id: str
    holder: str


@dataclass(frozen=True)
class AdoptOrder:
    """A snapshot of another application, or cluster, is to be used here: held from now on, and reported."""

    id: str
    """Of the order, for its report."""
    snapshot: str
    """Its id in the storage of the configuration."""
    holder: str


@dataclass(frozen=True)
class VerifyOrder:
    """A snapshot is to be read back."""

    id: str
    """Of the order, for its report."""
    snapshot: str


@dataclass(frozen=True)
class StateChoice:
    """Some of a snapshot's state; what is left empty takes all in."""

    query: str = ""
    operator: int | None = None
    name: str = ""
    """Of a state variable, a side of a join, or a state store."""


@dataclass(frozen=True)
class ExportOrder:
    """State of a snapshot is to be written as plain files; for a pod with Spark, and for no driver."""

    id: str
    """Of the order, for its report."""
    snapshot: str
    export: str
    """Its id: its files are below ``exports/<export>/``."""
    format: str
    """One of EXPORT_FORMATS."""
    states: tuple[StateChoice, ...] = ()
    """None: all state."""
    cores: int = 1
    heap_mib: int = 1024
    spark_conf: dict[str, str] = field(default_factory=dict)
    """Settings of the application's that state may be read by."""


@dataclass(frozen=True)
class SnapshotOrders:
    """Everything that is wanted now of one application's snapshots."""

    take: tuple[SnapshotOrder, ...] = ()
    dispose: tuple[str, ...] = ()
    """Ids of snapshots that shall be gone, complete or not."""
    release: tuple[ReleaseOrder, ...] = ()
    """Done first where the same snapshot is to be disposed of; otherwise it is all that is done."""
    adopt: tuple[AdoptOrder, ...] = ()
    verify: tuple[VerifyOrder, ...] = ()
    export: tuple[ExportOrder, ...] = ()


class SnapshotState(OpenEnum):
    """What became of an order."""

    WAITING = "Waiting"
    """Not begun, or given up for now, for the reason given; it is tried again by itself."""
    COPYING = "Copying"
    READY = "Ready"
    FAILED = "Failed"
    """Given up for good; what was copied is disposed of."""
    DISPOSED = "Disposed"
    HELD = "Held"
    """Not disposed of: somebody needs it, whom the message names."""
    RELEASED = "Released"
    """Not held any more by whom the order named."""
    VERIFIED = "Verified"
    """Read back, and whole."""
    EXPORTED = "Exported"
    """Its state was written as plain files."""
    UNKNOWN = "Unknown"
    """Any state of a newer runtime that is not known here."""


SNAPSHOT_FAILURES = (
    Reason.NOTHING_COMMITTED,
    Reason.BATCH_LOST,
    Reason.CLEANED_TOO_FAST,
    Reason.UNREADABLE_CHECKPOINT,
    Reason.STORAGE_UNAVAILABLE,
    Reason.CATALOG_LOST,
    Reason.DISPOSED_MEANWHILE,
    Reason.STATE_NOT_FOUND,
    Reason.STATE_UNREADABLE,
    Reason.FORMAT_UNSUITABLE,
    Reason.EXPORT_EXISTS,
    Reason.EXPORT_FAILED,
    Reason.SNAPSHOT_MISSING,
    Reason.SNAPSHOT_DAMAGED,
    Reason.SNAPSHOT_GONE,
    Reason.NEWER_FORMAT,
    Reason.CLAIM_DAMAGED,
    Reason.NOTES_DAMAGED,
    Reason.INTERNAL_ERROR,
)
"""Why an order failed, or waits because of a fault."""


@dataclass(frozen=True)
class StateFacts:
    """What a checkpoint says of a query's state; this, of a stateless query."""

    provider: str = ""
    """HDFS or RocksDB."""
    partitions: int = 0
    operators: tuple[str, ...] = ()
    """Spark's names of them."""
    one_place: bool = False
    """One of them has all of its state in the first partition: an aggregation without a key."""


@dataclass(frozen=True)
class QueryPin:
    """One query in a snapshot."""

    batch: int
    offsets: str
    """JSON lines as in Spark's ``offsets/<batch>``, sources only; cut at :data:`LONGEST_OFFSETS`."""
    state: StateFacts | None = None
    """None: an earlier runtime does not report it."""


@dataclass(frozen=True)
class SnapshotReport:
    """How far one order is; sizes in bytes, times in seconds since the epoch."""

    id: str
    state: SnapshotState
    reason: Reason = Reason.NONE
    message: str = ""
    """For a person: what it is, and what to do."""
    files: int = 0
    bytes: int = 0
    of_files: int = 0
    of_bytes: int = 0
    """Copied, of what is to be copied; of a ready one all it needs."""
    rows: int = 0
    """Of an export."""
    new_bytes: int = 0
    """How much of a ready one no earlier snapshot had."""
    created: float = 0.0
    seconds: float = 0.0
    """From its order's first attempt in this process to its end."""
    lineage: int = 0
    parent: str = ""
    digest: str = ""
    manifest: str = ""
    """s3://bucket/key."""
    spark_version: str = ""
    image: str = ""
    app: str = ""
    """``namespace/name`` of the application whose state it is."""
    app_uid: str = ""
    spec_hash: str = ""
    """Of the version whose state it is."""
    spec: str = ""
    """What makes that version; of a snapshot that was taken elsewhere, since only that is news."""
    queries: dict[str, QueryPin] = field(default_factory=dict)


@dataclass(frozen=True)
class SnapshotReports:
    """The termination message of a snapshot pod."""

    snapshots: tuple[SnapshotReport, ...] = ()
