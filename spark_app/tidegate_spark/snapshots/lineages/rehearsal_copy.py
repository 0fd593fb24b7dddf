"""A rehearsal's files in the application's storage, and their removal. I/O by the repository."""

from __future__ import annotations

from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.rehearsal_protocol import REHEARSAL_PREFIX
from tidegate_spark.snapshots.lineages.attempts import empty
from tidegate_spark.snapshots.reach import reach_repository
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.s3_client import Credentials


def forget(repository: SnapshotRepository, snapshot: str) -> None:
    """Remove everything that was rehearsed on a snapshot; there need not be anything.

    Args:
        repository: the application's.
        snapshot: its id.

    Raises:
        Exception: what the store's client raises; to be done again.
    """
    empty(repository, repository.key(REHEARSAL_PREFIX, snapshot) + "/")


def forget_own(config: DriverConfig, credentials: Credentials | None) -> None:
    """Remove everything in the place of the rehearsal that ``config`` is of; raises as :func:`forget`."""
    start = config.start_from
    if config.rehearsal is None or start is None:
        raise ValueError("no rehearsal: its place is the application's")
    forget(reach_repository(start.storage, credentials), start.snapshot)
