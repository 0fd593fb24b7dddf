"""Copies the files of one operator's state from a snapshot to a local directory. Does I/O.

Spark's state reader reads files more than once, and nothing is written where the snapshot is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tidegate_spark.snapshots.checkpoint.checkpoint import CHECKSUM_SUFFIX
from tidegate_spark.snapshots.checkpoint.operator_files import STATE, names_its_place, relocated
from tidegate_spark.snapshots.copying import Copiers, Progress, in_parallel
from tidegate_spark.snapshots.manifest import File, Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.store import SnapshotError, VanishedError

_OPERATOR = re.compile(rf"{STATE}/(\d+)/.+", re.ASCII)
_STORES = re.compile(rf"{STATE}/(\d+)/\d+/.+", re.ASCII)
"""What is in the directory of a partition: all of the state, and some schemas."""


def operators_of(made: Manifest, query: str) -> tuple[int, ...]:
    """Return the numbers of a query's operators that have files; pure."""
    found = (_OPERATOR.fullmatch(file.path) for file in made.files if file.query == query)
    return tuple(sorted({int(match.group(1)) for match in found if match is not None}))


def bones_of(made: Manifest, query: str) -> list[File]:
    """Return the files of a query that are no state, but say what state there is; pure."""
    return [file for file in made.files if _is_of(file, query) and not _STORES.fullmatch(file.path)]


def stores_of(made: Manifest, query: str, operator: int) -> list[File]:
    """Return the files with the state of one operator; pure."""
    found = ((file, _STORES.fullmatch(file.path)) for file in made.files if _is_of(file, query))
    return [file for file, match in found if match is not None and int(match.group(1)) == operator]


def _is_of(file: File, query: str) -> bool:
    # The checksum of a file that names its place is of the original; Spark does without.
    original = file.path.removesuffix(CHECKSUM_SUFFIX)
    return file.query == query and (original == file.path or not names_its_place(original))


def fetch(repository: SnapshotRepository, files: Iterable[File], directory: Path, copiers: Copiers) -> None:
    """Write files of a checkpoint into ``directory``, which is its place from then on.

    Args:
        repository: where the snapshot is.
        files: of one query.
        directory: empty.
        copiers: how many at a time; called after each.

    Raises:
        VanishedError: a file is gone, or is not what was published.
        UnreadableCheckpointError: a file that says where it is cannot be read.
        Exception: what the store's client raises.
    """
    wanted = list(files)
    of_bytes, done = sum(file.size for file in wanted), 0
    for number, size in enumerate(in_parallel(copiers, partial(_fetch_one, repository, directory), wanted)):
        done += size
        copiers.report(Progress(number + 1, done, len(wanted), of_bytes))


def _fetch_one(repository: SnapshotRepository, directory: Path, file: File) -> int:
    key = repository.key(file.key)
    target = (directory / file.path).resolve()
    if not target.is_relative_to(directory.resolve()):
        raise SnapshotError(f"{file.path} is no path of a checkpoint")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not by way of this process's memory: one file may have all state of a partition.
    size = repository.store.get_file(key, target)
    if size is None:
        raise VanishedError(f"{key} is gone")
    # The same content may have been put again, and have another ETag: then the size is all there is to go by.
    if size != file.size:
        raise VanishedError(f"{key} has {size} bytes by now, and {file.size} were published")
    if names_its_place(file.path):
        target.write_bytes(relocated(file.path, target.read_bytes(), directory.resolve().as_uri()))
    return file.size
