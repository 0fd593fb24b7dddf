"""The files of a state store of Spark's HDFSBackedStateStoreProvider. Pure.

A version is the newest ``<version>.snapshot`` that is not later, and a ``<version>.delta`` for each version after it
(``loadMap`` and ``loadSnapshot``, with AutoSnapshotLoader); without a snapshot, all deltas. A retried batch writes its
deltas again under the same names.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tidegate_spark.snapshots.checkpoint.checkpoint import (
    METADATA_DIRECTORY,
    Checkpoint,
    Needed,
    UnreadableCheckpointError,
)

_STATE_FILE = re.compile(r"\d+\.(delta|snapshot)", re.ASCII)


def store_files(checkpoint: Checkpoint, directory: str, version: int, stores: Collection[str]) -> list[Needed]:
    """Return the files of which Spark makes ``version`` of the store in ``directory``.

    Args:
        checkpoint: the whole checkpoint.
        directory: where the store is, relative to the checkpoint's root.
        version: of the state; a batch leaves its number and one.
        stores: names of further stores, which are directories in this one.

    Raises:
        MissingFileError: a file of the version is not there.
        UnreadableCheckpointError: there is a file of another kind.
    """
    names = checkpoint.files(directory)
    for name in [name for name in names if not _STATE_FILE.fullmatch(name)]:
        raise UnreadableCheckpointError(
            f"{directory}/{name}", "is no file that a HDFS-backed state store is known to write"
        )
    for name in checkpoint.directories(directory):
        if name != METADATA_DIRECTORY and name not in stores:
            raise UnreadableCheckpointError(f"{directory}/{name}", "is no directory of a HDFS-backed state store")
    snapshots = [int(name.partition(".")[0]) for name in names if name.endswith(".snapshot")]
    start = max((snapshot for snapshot in snapshots if snapshot <= version), default=0)
    reason = f"version {version} of the state is made of it"
    needed = [checkpoint.need(f"{directory}/{start}.snapshot", reason)] if start else []
    return needed + [checkpoint.need(f"{directory}/{each}.delta", reason) for each in range(start + 1, version + 1)]
