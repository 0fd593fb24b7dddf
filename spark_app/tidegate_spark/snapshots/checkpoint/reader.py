"""The interface by which a snapshot is taken of a checkpoint; :mod:`layout` implements it. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from tidegate_spark.snapshots.checkpoint.checkpoint import Heads
from tidegate_spark.storage.store import Entry

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


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
    def files(self) -> Iterable[NeededFile]:
        """All files without which a query does not resume after the batch."""

    @property
    def offsets(self) -> str:
        """The content of ``offsets/<batch>``, verbatim."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is worth knowing of the checkpoint, as JSON: provider, format, partitions."""


class Layout(Protocol):
    """One way to read checkpoints; the module ``layout`` is one.

    ``listing`` is one query's checkpoint: path relative to its root -> entry (whose ``key`` is the object's own).
    ``read`` returns the content of a path; it raises VanishedError if it is gone, which passes through.
    """

    def newest_committed(self, listing: Mapping[str, Entry], /) -> int | None:
        """Return the newest batch that is committed, None if there is none."""

    def needed_files(
        self, listing: Mapping[str, Entry], read: Callable[[str], bytes], batch: int, each: Each, read_head: Heads, /
    ) -> CheckpointAt:
        """Return what ``batch`` needs; ``each`` is to be used as ``map`` is, and calls in parallel.

        ``read_head`` returns so many bytes at the beginning of a path.

        Raises:
            VanishedError: a file that is needed is not in the listing.
            SnapshotError: something is not understood: UnreadableCheckpointError, with file and reason.
        """
