"""Takes a snapshot of an application's checkpoints while they are in use. I/O through the object store's port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tidegate_spark.snapshots.store import Entry


class NeededFile(Protocol):
    """One file of a checkpoint; ``layout.Needed`` is one."""

    @property
    def path(self) -> str:
        """Relative to the root of the query's checkpoint, as the keys of the listing are."""

    @property
    def shared(self) -> bool:
        """Whether it is immutable and its name (without directories) is its own for ever: RocksDB's SST files."""


class CheckpointAt(Protocol):
    """The files of one query's checkpoint that make up one batch; ``layout.CheckpointAt`` is one."""

    @property
    def batch(self) -> int:
        """The batch."""

    @property
    def files(self) -> tuple[NeededFile, ...]:
        """All files without which a query does not resume after the batch."""

    @property
    def offsets(self) -> str:
        """The content of ``offsets/<batch>``, verbatim."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is worth knowing of the checkpoint, as JSON: provider, format, partitions …"""


class Layout(Protocol):
    """What this module asks of :mod:`tidegate_spark.snapshots.layout`.

    ``listing`` is one query's checkpoint: path relative to its root -> entry (whose ``key`` is the object's own).
    ``read`` returns the content of a path; it raises VanishedError if it is gone, which passes through.
    """

    def newest_committed(self, listing: Mapping[str, Entry]) -> int | None:
        """Return the newest batch that is committed, None if there is none."""

    def needed_files(self, listing: Mapping[str, Entry], read: Callable[[str], bytes], batch: int) -> CheckpointAt:
        """Return what ``batch`` needs.

        Raises:
            UnreadableCheckpointError: with file and reason; also if a file that is needed is not in the listing.
        """
