"""A checkpoint as its readers see it: a listing by directory, and errors. Pure.

File names are those of Spark 4.2; each reader names the Spark class that writes what it reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.storage.store import Entry, SnapshotError, VanishedError

METADATA_DIRECTORY = "_metadata"
"""Of an operator and of a state store: what is in it describes them and is not state."""
CHECKSUM_SUFFIX = ".crc"
"""What Spark's ChecksumCheckpointFileManager appends to a file's name for the file with its checksum."""


Heads = Optional[Callable[[str, int], bytes]]  # noqa: UP045 - evaluated here, and newer than the Python of Spark images
"""Returns so many bytes at the beginning of a file."""


class UnreadableCheckpointError(SnapshotError):
    """A checkpoint says what is not understood or what cannot be; looking again does not help."""

    def __init__(self, file: str, reason: str) -> None:
        """Name the file, relative to the checkpoint's root, and what is wrong with it."""
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


class MissingFileError(VanishedError):
    """A file that Spark wrote and that is needed is not there: Spark's cleaning was faster, or it was lost."""

    def __init__(self, file: str, reason: str) -> None:
        """Name the file, relative to the checkpoint's root, and what needs it."""
        super().__init__(f"{file} is missing: {reason}")
        self.file = file
        self.reason = reason


@dataclass(frozen=True)
class Needed:
    """One file without which a query does not resume."""

    path: str
    """Relative to the root of the query's checkpoint."""
    shared: bool = False
    """Immutable, with a name that is its own for ever, so that one copy serves many snapshots: RocksDB's SST files."""


class Checkpoint:
    """One query's checkpoint: a listing and a way to read files of it.

    Hidden files are left out: Spark gives such names to files that it has not finished, and Hadoop to local checksums.
    """

    def __init__(self, listing: Mapping[str, Entry], read: Callable[[str], bytes], read_head: Heads = None) -> None:
        """Look at ``listing``, whose keys are relative to the checkpoint's root; ``read`` takes such a key.

        ``read_head`` takes a number of bytes as well; None: files are read whole.
        """
        self._entries = {path: entry for path, entry in listing.items() if not _is_hidden(path)}
        self._read, self._read_head = read, read_head
        self._files: dict[str, list[str]] = {}
        self._directories: dict[str, set[str]] = {}
        for path in sorted(self._entries):
            parts = path.split("/")
            self._files.setdefault("/".join(parts[:-1]), []).append(parts[-1])
            for depth in range(1, len(parts)):
                self._directories.setdefault("/".join(parts[: depth - 1]), set()).add(parts[depth - 1])

    def __contains__(self, path: str) -> bool:
        """Return whether ``path`` is a file of the checkpoint."""
        return path in self._entries

    def files(self, directory: str) -> list[str]:
        """Return the names of the files in ``directory`` (not below it), without those of checksums, in order."""
        return [name for name in self._files.get(directory, ()) if not name.endswith(CHECKSUM_SUFFIX)]

    def directories(self, directory: str) -> list[str]:
        """Return the names of the directories in ``directory``, in order."""
        return sorted(self._directories.get(directory, ()))

    def below(self, directory: str) -> list[str]:
        """Return the paths of all files below ``directory``, those of checksums too, in order."""
        return [path for path in self._entries if path.startswith(directory + "/")]

    def numbers(self, directory: str) -> list[int]:
        """Return those names of files in ``directory`` that are numbers, as numbers, the lowest first."""
        return sorted(int(name) for name in self.files(directory) if is_number(name))

    def size(self, path: str) -> int:
        """Return the size of a file."""
        return self._entries[path].size

    def need(self, path: str, reason: str, *, shared: bool = False) -> Needed:
        """Return ``path`` as a needed file.

        Raises:
            MissingFileError: it is not there; ``reason`` says what needs it.
        """
        if path not in self._entries:
            raise MissingFileError(path, reason)
        return Needed(path, shared)

    def read(self, path: str, reason: str) -> bytes:
        """Return the content of ``path``.

        Raises:
            MissingFileError: it is not there; ``reason`` says what needs it.
            Exception: what reading raises.
        """
        self.need(path, reason)
        return self._read(path)

    def read_head(self, path: str, size: int, reason: str) -> bytes:
        """Return the first ``size`` bytes of ``path`` or more of them; raises as ``read``."""
        if self._read_head is None or path not in self._entries or self.size(path) <= size:
            return self.read(path, reason)
        return self._read_head(path, size)

    def read_text(self, path: str, reason: str) -> str:
        """Return the content of ``path`` as text; raises as ``read``, and UnreadableCheckpointError if it is none."""
        try:
            return self.read(path, reason).decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableCheckpointError(path, f"is not UTF-8 text ({error})") from error


def parsed(path: str, text: str) -> dict[str, Any]:
    """Return the JSON object that ``text``, from the file ``path``, is.

    Raises:
        UnreadableCheckpointError: it is none.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UnreadableCheckpointError(path, f"is not the JSON that was expected ({error})") from error
    if not isinstance(value, dict):
        raise UnreadableCheckpointError(path, f"is not a JSON object but {text[:40]!r}")
    return value


def versioned(path: str, text: str, newest: int) -> tuple[int, str]:
    """Return the version in the first line of a file, ``v<number>``, and the rest; MetadataVersionUtil of Spark.

    Raises:
        UnreadableCheckpointError: there is no such line, or the version is later than ``newest``.
    """
    first, _, rest = text.partition("\n")
    first = first.strip()
    if not (first.startswith("v") and is_number(first[1:]) and int(first[1:]) > 0):
        raise UnreadableCheckpointError(path, f"starts with {first[:40]!r}, not with a version")
    version = int(first[1:])
    if version > newest:
        raise UnreadableCheckpointError(path, f"has version {version}; {newest} is the latest that is understood")
    return version, rest


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/")) or path.endswith("/")
