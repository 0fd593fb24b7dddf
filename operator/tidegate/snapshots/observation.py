"""All that one decision about a StreamSnapshot may use, as one frozen value. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.api.spec import POD_START_TIMEOUT
from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.cache.process_state import PodProgress
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord
from tidegate.snapshots.history import Later
from tidegate_spark.contract.protocol import AgentReport
from tidegate_spark.contract.reasons import Reason


@dataclass(frozen=True, slots=True)
class PodRefusal:
    """The API server's refusal to create the snapshot's pod."""

    pod_name: str
    reason: Reason
    message: str
    at: float
    attempts: int


@dataclass(frozen=True, slots=True)
class SnapshotMemory:
    """What this process remembers of a snapshot. All of it may be lost: an order is then given once more."""

    status_written_at: float = 0.0
    ordered_at: float = 0.0
    ordered_to: str = ""
    """Uid of the driver pod and number of its restarts: another process gets the orders again."""
    not_taken: str = ""
    """Why the agent did not take the last order; empty if it did."""
    refusal: PodRefusal | None = None
    progress: PodProgress | None = None
    write_refused: tuple[str, str] = ("", "")
    """Which part of the resource the API server did not let be changed (the status, or the rest), and what is said of
    it; empty texts once that part could be written."""


@dataclass(frozen=True, slots=True)
class SnapshotObservation:
    """One StreamSnapshot and everything around it; taken at one moment, changed by nobody."""

    snapshot: StreamSnapshot
    platform: Platform
    app: StreamingApp | None = None
    """The application of the name that it refers to, whichever that is."""
    app_unreadable: bool = False
    """There is one, and it cannot be read."""
    driver: PodRecord | None = None
    agent: AgentReport | None = None
    """The newest answer of the driver process that runs now; None if there is none, or it is old."""
    taking: PodRecord | None = None
    disposing: PodRecord | None = None
    """The snapshot's own pods."""
    verifying: PodRecord | None = None
    """The one that reads it back, whichever number asked for it."""
    exporting: PodRecord | None = None
    """One that writes its state as plain files, of whichever export."""
    purged: bool = False
    """The storage of its application was purged, as the pod says that did it."""
    forks: tuple[str, ...] = ()
    """Names of applications that are to start with it and have not yet, sorted."""
    begun_by: tuple[str, ...] = ()
    """Names of applications that start with it, whether they have or not."""
    later: Later = Later()
    """What was made after it of the same application."""
    waiting: OpenCount = OpenCount()
    """Accepted snapshots that are on their way: of the same application or, if this one is imported, those imported."""
    without_app: OpenCount = OpenCount()
    """If the application is not there: those of the namespace whose applications are not, whatever their names."""
    clock_skew: float = 0.0
    """Seconds by which our clock is ahead of the API server's, as far as that is known."""
    memory: SnapshotMemory = SnapshotMemory()


def start_timeout(o: SnapshotObservation) -> int:
    """Return after how many seconds it is looked up why a pod of the snapshot does not begin."""
    return o.app.spec.pod_start_timeout_seconds if o.app is not None else POD_START_TIMEOUT


def pods_of(o: SnapshotObservation) -> tuple[PodRecord, ...]:
    """Return the snapshot's own pods."""
    return tuple(pod for pod in (o.taking, o.disposing, o.verifying, o.exporting) if pod is not None)


def with_pods(o: SnapshotObservation, changed: Callable[[PodRecord], PodRecord]) -> SnapshotObservation:
    """Return an observation whose own pods are changed, each by itself."""
    return dataclasses.replace(
        o,
        taking=changed(o.taking) if o.taking is not None else None,
        disposing=changed(o.disposing) if o.disposing is not None else None,
        verifying=changed(o.verifying) if o.verifying is not None else None,
        exporting=changed(o.exporting) if o.exporting is not None else None,
    )
