"""The port to an object store: what snapshots ask of one, and no more. No I/O.

Keys are relative to one bucket. Every object is written whole or not at all. What is not said here is not relied on:
stores differ in what a copy answers, and all of those tried ignore conditions on the *target* of a copy, so that a copy
is never a lock. Conditions on its source they honour.

A key must not be another key followed by a slash and more: stores that keep objects as files refuse that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol


class SnapshotError(Exception):
    """What keeps a snapshot from being taken, restored or disposed of; the message is for a person."""


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

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return content and ETag, None if there is no such object."""

    def head(self, key: str) -> Found | None:
        """Return size, ETag and checksum, None if there is no such object."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects whose keys begin with ``prefix``, without markers of directories (keys that end in "/")."""

    def put(self, key: str, body: bytes) -> None:
        """Write an object, whether or not there is one."""

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
    """Return whether both have the same content, as far as sizes, ETags and the store's checksums can tell.

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
