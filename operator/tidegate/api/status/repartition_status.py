"""``status.upgrade.repartition``. No I/O."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class RepartitionResult(StrEnum):
    """What became of state that was to be repartitioned."""

    COMPLETED = "Completed"
    NOT_NEEDED = "NotNeeded"
    FAILED = "Failed"


class RepartitionProgress(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How far an attempt is: what is copied, first into the pin and then into the new lineage, and rows divided."""

    files: int = 0
    of_files: int = 0
    bytes: int = 0
    of_bytes: int = 0
    rows: int = 0


class RepartitionStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """State that is to have another number of partitions: a pod makes a new lineage of it, between stop and launch.

    Each attempt has an epoch and a lineage of its own, 0 as long as there is none, and one pod, whose uid is noted when
    it is seen first. ``snapshot_id`` is what it is made of. ``cause`` is a word of the contract with the runtime, or
    InvalidSpec. ``rows`` are those of all state, the same before and after. ``batch`` is the highest that the new
    lineage begins after: Spark makes one of the repartition. ``progress`` is the pod's, while it works. ``deferrals``
    counts how often this edit's repartition was deferred, because the previous version was ended inside a batch.
    ``before`` is the former name of ``previous_partitions``.
    """

    partitions: int
    previous_partitions: int = 0
    snapshot_id: str = ""
    epoch: int = 0
    lineage: int = 0
    pod_uid: str = ""
    attempts: int = 0
    deferrals: int = 0
    result: str = ""
    cause: str = ""
    message: str = ""
    rows: int = 0
    batch: int | None = None
    progress: RepartitionProgress | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    before: int = 0

    @property
    def from_partitions(self) -> int:
        """How many there were, by whichever name that was written."""
        return self.previous_partitions or self.before
