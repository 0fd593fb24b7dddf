"""The files of a state store of Spark's RocksDBStateStoreProvider. Pure.

RocksDBFileManager writes a version as ``<version>.zip``, whose entry ``metadata`` (RocksDBCheckpointMetadata) names the
immutable files in ``SSTs/`` and ``logs/`` that belong to it. With changelogs (StateStoreChangelogWriter) a version is
the newest snapshot that is not later, and a ``<version>.changelog`` for each version after it.

In checkpoint format 2 names are ``<version>_<id>``, with the id of the attempt; the commit log says which attempt
counted. The lineage at the head of its changelog names the versions it was made of. Other ids are ignored, as Spark
does (RocksDB.loadWithCheckpointId).
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.snapshots.checkpoint.checkpoint import (
    METADATA_DIRECTORY,
    Checkpoint,
    MissingFileError,
    Needed,
    UnreadableCheckpointError,
    parsed,
    versioned,
)
from tidegate_spark.snapshots.checkpoint.compressed import DataInput, NotDecompressedError

_STATE_FILE = re.compile(r"\d+(_[^_./]+)?\.(zip|changelog)", re.ASCII)
_SSTS, _LOGS = "SSTs", "logs"
_FIRST_WITH_LINEAGE, _NEWEST_CHANGELOG = 3, 4
HEAD_BYTES = 1 << 20
"""Of a changelog: far more than its lineage, of at most 64 KiB, is in. A batch's changelog may have gigabytes."""


@dataclass(frozen=True)
class _Version:
    """A version of a store, with its unique id in checkpoint format 2."""

    number: int
    unique_id: str | None

    @property
    def name(self) -> str:
        return str(self.number) if self.unique_id is None else f"{self.number}_{self.unique_id}"


def store_files(
    checkpoint: Checkpoint, directory: str, version: int, unique_id: str | None, stores: Collection[str]
) -> list[Needed]:
    """Return the files of which Spark makes ``version`` of the store in ``directory``.

    Args:
        checkpoint: the whole checkpoint.
        directory: where the store is, relative to the checkpoint's root.
        version: of the state; a batch leaves its number and one.
        unique_id: of this version, from the commit log; None in checkpoint format 1.
        stores: names of further stores, which are directories in this one.

    Raises:
        MissingFileError: a file of the version is not there.
        UnreadableCheckpointError: a file is not what it should be, or there is a file of another kind.
    """
    _refuse_unknown(checkpoint, directory, stores)
    if unique_id is None:
        snapshot, later = _by_number(checkpoint, directory, version)
    else:
        snapshot, later = _by_lineage(checkpoint, directory, _Version(version, unique_id))
    needed = [] if snapshot is None else _snapshot(checkpoint, directory, snapshot)
    kind = _kind(checkpoint, directory)
    reason = f"version {version} of the state is made of it"
    return needed + [checkpoint.need(f"{directory}/{each.name}.{kind}", reason) for each in later]


def has_changelogs(checkpoint: Checkpoint, directory: str) -> bool:
    """Return whether the store in ``directory`` has changelogs, of whatever version."""
    return any(name.endswith(".changelog") for name in checkpoint.files(directory))


def _refuse_unknown(checkpoint: Checkpoint, directory: str, stores: Collection[str]) -> None:
    for name in checkpoint.files(directory):
        if not _STATE_FILE.fullmatch(name):
            raise UnreadableCheckpointError(
                f"{directory}/{name}", "is no file that a RocksDB state store is known to write"
            )
    for name in checkpoint.directories(directory):
        if name not in (_SSTS, _LOGS, METADATA_DIRECTORY) and name not in stores:
            raise UnreadableCheckpointError(f"{directory}/{name}", "is no directory of a RocksDB state store")


def _by_number(checkpoint: Checkpoint, directory: str, version: int) -> tuple[_Version | None, Iterable[_Version]]:
    """Return the snapshot to start from and the versions after it, in checkpoint format 1."""
    names = [name[: -len(".zip")] for name in checkpoint.files(directory) if name.endswith(".zip")]
    start = max((int(name) for name in names if is_number(name) and int(name) <= version), default=0)
    later = (_Version(number, None) for number in range(start + 1, version + 1))
    return (_Version(start, None) if start else None), later


def _by_lineage(
    checkpoint: Checkpoint, directory: str, version: _Version
) -> tuple[_Version | None, Iterable[_Version]]:
    """Return the snapshot to start from and the versions after it, in checkpoint format 2."""
    if f"{directory}/{version.name}.zip" in checkpoint:
        return version, ()
    lineage = _lineage(checkpoint, directory, version)
    snapshots = [each for each in lineage if f"{directory}/{each.name}.zip" in checkpoint]
    snapshot = max(snapshots, key=lambda each: each.number, default=None)
    start = 0 if snapshot is None else snapshot.number
    later = sorted((each for each in lineage if each.number > start), key=lambda each: each.number)
    numbers = [each.number for each in later]
    first = start + 1 if snapshot is not None else numbers[0]
    if numbers != list(range(first, version.number + 1)):
        raise UnreadableCheckpointError(f"{directory}/{version.name}.changelog", f"has a lineage with gaps, {numbers}")
    if first != start + 1:
        # A lineage starts from a snapshot or with the first version.
        raise MissingFileError(f"{directory}/{later[0].name}.zip", f"the lineage of {version.name} starts from it")
    return snapshot, later


def _kind(checkpoint: Checkpoint, directory: str) -> str:
    """Return what a version without a snapshot lacks: its changelog or, if the store has none at all, the snapshot."""
    return "changelog" if has_changelogs(checkpoint, directory) else "zip"


def _snapshot(checkpoint: Checkpoint, directory: str, version: _Version) -> list[Needed]:
    path = f"{directory}/{version.name}.zip"
    needed = [checkpoint.need(path, "it is the snapshot of the state")]
    metadata = _snapshot_metadata(checkpoint, path)
    for field, name_field, place in (("sstFiles", "dfsSstFileName", _SSTS), ("logFiles", "dfsLogFileName", _LOGS)):
        for file in _listed(path, metadata, field):
            name, size = file.get(name_field), file.get("sizeBytes")
            if not isinstance(name, str) or not name or "/" in name or not isinstance(size, int):
                raise UnreadableCheckpointError(path, f"lists {file!r} among its {field}")
            # RocksDBFileManager.dfsFilePath goes by the name's end.
            if not name.endswith(".sst" if place == _SSTS else ".log"):
                raise UnreadableCheckpointError(path, f"lists {name} among its {field}")
            found = checkpoint.need(f"{directory}/{place}/{name}", f"{path} names it", shared=place == _SSTS)
            if checkpoint.size(found.path) != size:
                raise UnreadableCheckpointError(
                    found.path, f"has {checkpoint.size(found.path)} bytes where {path} says {size}"
                )
            needed.append(found)
    return needed


def _snapshot_metadata(checkpoint: Checkpoint, path: str) -> dict[str, Any]:
    body = checkpoint.read(path, "it is the snapshot of the state")
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            text = archive.read("metadata").decode("utf-8")
    except KeyError as error:
        raise UnreadableCheckpointError(path, "has no entry `metadata`") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise UnreadableCheckpointError(path, f"is no whole zip file ({error})") from error
    _, rest = versioned(path, text, newest=1)
    return parsed(path, rest)


def _listed(path: str, metadata: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """Return a list of the metadata; Spark leaves an empty ``logFiles`` out."""
    files = metadata.get(field)
    if files is None and field == "logFiles":
        return []
    if not isinstance(files, list) or not all(isinstance(file, dict) for file in files):
        raise UnreadableCheckpointError(path, f"has no list `{field}` in its metadata")
    return files


def _lineage(checkpoint: Checkpoint, directory: str, version: _Version) -> list[_Version]:
    """Return ``version`` and those it was made of, back to a snapshot or to the first."""
    path = f"{directory}/{version.name}.{_kind(checkpoint, directory)}"
    reason = f"the commit log names version {version.name} of the state"
    body = checkpoint.read_head(path, HEAD_BYTES, reason)
    try:
        lineage = _lineage_of(path, body)
    except UnreadableCheckpointError:
        if len(body) >= checkpoint.size(path):
            raise
        # A block may be longer than any that Spark makes by itself.
        lineage = _lineage_of(path, checkpoint.read(path, reason))
    if any(each.number >= version.number for each in lineage):
        raise UnreadableCheckpointError(path, "has itself or a later version in its lineage")
    return [*sorted(lineage, key=lambda each: each.number), version]


def _lineage_of(path: str, body: bytes) -> list[_Version]:
    """Return the versions that the head of a changelog names."""
    try:
        head = DataInput(body)
        _check_changelog_version(path, head.utf())
        items = json.loads(head.utf())
        return [_Version(int(item["version"]), str(item["checkpointUniqueId"])) for item in items]
    except NotDecompressedError as error:
        raise UnreadableCheckpointError(path, str(error)) from error
    except (EOFError, ValueError, TypeError, KeyError) as error:
        raise UnreadableCheckpointError(path, f"has no lineage at its head ({error!r})") from error


def _check_changelog_version(path: str, first: str) -> None:
    number, _ = versioned(path, first, newest=_NEWEST_CHANGELOG)
    if number < _FIRST_WITH_LINEAGE:
        raise UnreadableCheckpointError(path, f"is a changelog of version {number}, which has no lineage")
