"""The port to an object store: what snapshots need of one. No I/O.

Keys are relative to one bucket, and every object is written whole or not at all. Stores ignore conditions on the
*target* of a copy, so a copy is never a lock; they honour conditions on its source. A key must not be another key
followed by a slash: stores that keep objects as files refuse that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tidegate_spark.contract.json_form import NewerFormatError


class SnapshotError(Exception):
    """What keeps a snapshot from being taken, restored or disposed of; the message is for a person."""


class NewerStorageError(SnapshotError):
    """A newer Tidegate wrote an object of the application's: it is neither damaged nor to be written over."""


@contextmanager
def naming_newer(key: str) -> Iterator[None]:
    """Name the object that is read in the block, if a newer Tidegate wrote it.

    Raises:
        NewerStorageError: it did.
    """
    try:
        yield
    except NewerFormatError as error:
        raise NewerStorageError(f"{key} cannot be read: {error}") from error


class VanishedError(SnapshotError):
    """An object that was listed is gone, or is another one by now."""


@dataclass(frozen=True)
class Place:
    """An object anywhere in a store."""

    bucket: str
    key: str


@dataclass(frozen=True)
class Entry:
    """One object of a listing."""

    key: str
    size: int
    etag: str
    modified: float = 0.0
    """Seconds since the epoch, by the store's clock."""


@dataclass(frozen=True)
class Found:
    """What is known of one object."""

    size: int
    etag: str
    """Names this content of this object, for conditions. Copies of one content may have different ones: large objects
    and encrypted ones do."""
    checksum: str = ""
    """Of the content, ``<algorithm>:<value>``, as the store computed it; empty if it did not."""
    plain: bool = False
    """Whether the ETag is the MD5 of the content; those of parts and of what is encrypted are something else."""


PART_BYTES = 64 << 20
"""Of an object that is copied in parts."""


@dataclass(frozen=True)
class Digest:
    """What the content of an object is, read to its end."""

    size: int
    md5: str
    parts_md5: str
    """The ETag that most stores give to an object of parts of :data:`PART_BYTES`."""


class Digester:
    """Makes a digest of content that comes in pieces."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        """Start with nothing."""
        self._part_bytes, self._size, self._in_part = part_bytes, 0, 0
        self._whole, self._part = _md5(), _md5()
        self._parts: list[bytes] = []

    def take(self, piece: bytes) -> None:
        """Take the next piece."""
        self._whole.update(piece)
        self._size += len(piece)
        while piece:
            now, piece = piece[: self._part_bytes - self._in_part], piece[self._part_bytes - self._in_part :]
            self._part.update(now)
            self._in_part += len(now)
            if self._in_part == self._part_bytes:
                self._end_part()

    def digest(self) -> Digest:
        """Return what it was; nothing is to be taken after that."""
        if self._in_part or not self._parts:
            self._end_part()
        parts = _md5(b"".join(self._parts)).hexdigest()
        return Digest(self._size, self._whole.hexdigest(), f"{parts}-{len(self._parts)}")

    def _end_part(self) -> None:
        self._parts.append(self._part.digest())
        self._part, self._in_part = _md5(), 0


def _md5(content: bytes = b"") -> hashlib._Hash:
    return hashlib.md5(content, usedforsecurity=False)


class ObjectStore(Protocol):
    """One bucket. Every method raises what the store's client raises if the store does not answer or refuses.

    What has such an end may have happened or not. The effect of a write is to be asked for then, and all writes here
    can be done again.
    """

    @property
    def bucket(self) -> str:
        """The bucket's name."""

    @property
    def service(self) -> str:
        """The store itself: between two buckets of equal services objects are copied by the store."""

    def get(self, key: str, most: int | None = None) -> tuple[bytes, str] | None:
        """Return content and ETag, None if there is no such object; of the content so many bytes, if that is said."""

    def get_head(self, key: str, size: int) -> bytes | None:
        """Return the first ``size`` bytes of an object, all of a shorter one; None if there is no such object."""

    def head(self, key: str) -> Found | None:
        """Return size, ETag and checksum, None if there is no such object."""

    def digest(self, key: str) -> Digest | None:
        """Read an object to its end, of whatever size; return what it holds, None if there is no such object.

        Raises:
            MismatchError: it is not what the store's own checksum says.
        """

    def get_file(self, key: str, path: Path) -> int | None:
        """Write an object's content into a file, as it comes; return its size, None if there is no such object."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects whose keys start with ``prefix``, without markers of directories (keys that end in "/")."""

    def put(self, key: str, body: bytes) -> None:
        """Write an object, whether or not there is one."""

    def put_file(self, key: str, path: Path) -> None:
        """Write an object with the content of a file, of whatever size, whether or not there is one."""

    def put_if(self, key: str, body: bytes, etag: str | None) -> str | None:
        """Write an object if it still has this ETag (None: if there is none).

        Returns:
            The new ETag; None if the store refuses, which may also be for an earlier attempt of the same write whose
            answer was lost.
        """

    def copy(self, source: Place, key: str, size: int, etag: str) -> Found:
        """Copy ``source`` to ``key`` inside the store, if it still has this size and ETag.

        Returns:
            The copy, whose content the store vouches for.

        Raises:
            VanishedError: ``source`` is gone or has changed.
            MismatchError: the copy is not what was to be copied.
        """

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that are missing are fine.

        Raises:
            NotDeletedError: something is left.
        """


class MismatchError(SnapshotError):
    """A copy is not what was copied, by the store's own account."""


class NotDeletedError(SnapshotError):
    """The store refused to delete something."""


def agree(source: Found, copy: Found) -> bool:
    """Return whether both have the same content, as far as sizes, ETags and the store's checksums can show.

    Equal ETags say so; different ones say nothing unless both are plain.
    """
    if source.size != copy.size:
        return False
    if source.etag == copy.etag:
        return True
    if source.plain and copy.plain:
        return False
    algorithm = source.checksum.partition(":")[0]
    if algorithm and algorithm == copy.checksum.partition(":")[0]:
        return source.checksum == copy.checksum
    return True
