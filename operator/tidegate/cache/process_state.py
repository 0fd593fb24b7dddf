"""What this process learned of applications and could learn again: answers, refusals, back-off. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_spark.contract.protocol import AgentReport
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport


@dataclass(frozen=True, slots=True)
class PodProgress:
    """What a process in a snapshot pod reported while it was at work."""

    process: str
    """Uid of the pod and number of its restarts."""
    report: SnapshotReport


@dataclass(frozen=True, slots=True)
class TimedReport:
    """An agent's answer and when it was taken (seconds of the monotonic clock)."""

    report: AgentReport
    taken_at: float
    driver_uid: str
    restarts: int
    """Of the driver's container when the answer was taken: an answer of an earlier process says nothing of this one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The API server's refusal to create a pod; the pod does not exist, so trying again needs no new epoch."""

    pod_name: str
    spec_hash: str
    epoch: int
    reason: Reason
    message: str
    at: float
    attempts: int
    """0: the next pod is another one, and is tried at once."""
    recorded: bool = True
    """The epoch was recorded for this very launch, so the next attempt may use it."""
    server_message: str = ""
    """The API server's own, if it finds something wrong with the pod whatever else there is."""
    holds_end: bool = False
    """What is in the way may write to the storage, so that the application does not go before it."""


@dataclass(frozen=True, slots=True)
class SnapshotRefusal:
    """The API server's refusal to create a StreamSnapshot."""

    name: str
    reason: Reason
    message: str
    at: float


@dataclass(frozen=True, slots=True)
class NotCreated:
    """A resource that the API server did not let be created, though not for what it says: it is tried again."""

    name: str
    message: str
    """For a person: the cause, and what to do."""
    at: float
    """Of the last attempt."""
    is_refused: bool = False
    """By a quota, RBAC or admission; else nobody answered, or a webhook failed."""
    attempts: int = 1

    @property
    def lasts(self) -> bool:
        """Whether somebody has to act: a single lost answer is no news."""
        return self.is_refused or self.attempts > 1


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What this process remembers of an application. All of it may be lost: decisions are then slower, never wrong."""

    refusal: Refusal | None = None
    status_written_at: float = 0.0
    launched_at: float = 0.0
    quick_relaunches: int = 0
    """Launches nobody asked for, each less than ten minutes after the one before."""
    not_created: str = ""
    """The API server's words, if it answered the last creation of a pod with a fault of its own, or the client's, if it
    gave no answer."""
    reported: tuple[int, int] = (0, 0)
    """Epoch and sequence of the last notice of the agent that became an event."""
    orders_given: tuple[float, str] = (0.0, "")
    """When the last orders about snapshots were given, in seconds since the epoch, and to which driver process."""
    executors_refused: tuple[str, str] = ("", "")
    """Which driver process refused the last order about its executors, and why."""
    orders_refused: tuple[str, str] = ("", "")
    """The same of the last orders about snapshots."""
    snapshot_refusal: SnapshotRefusal | None = None
    snapshot_not_created: NotCreated | None = None
    """None once one was created."""
    repartitioning: PodProgress | None = None
    """What the pod that repartitions the state reported."""
