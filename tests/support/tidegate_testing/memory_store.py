"""The object store's port in memory. No I/O.

Several actors share :class:`Buckets`, each through a :class:`MemoryStore` of its own. ``watch`` is called before and
after each request that reaches the store: it may raise (before: nothing happened; after: it happened and the answer is
lost) or let somebody else go first. A listing is read page by page, as it changes, as real ones are.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tidegate_spark.storage.store import Digest, Digester, Entry, Found, Place, SnapshotError, VanishedError

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Call:
    """One request: what is about to happen, or (``done``) has happened, to which key."""

    verb: str
    """get, head, list, put, put_if, copy or delete."""
    key: str
    done: bool
    bucket: str = ""

    @property
    def writes(self) -> bool:
        """Whether the request changes something."""
        return self.verb in ("put", "put_if", "copy", "delete")


@dataclass(frozen=True)
class Stored:
    """One object."""

    body: bytes
    etag: str
    modified: float


class KeyConflictError(SnapshotError):
    """A key that is also the directory of another one, which stores that keep objects as files refuse."""


@dataclass
class Buckets:
    """All buckets of one store.

    ``opaque`` makes ETags that differ with each write, as stores do that encrypt.
    """

    content: dict[str, dict[str, Stored]] = field(default_factory=dict)
    opaque: bool = False
    service: str = field(default_factory=lambda: f"memory {next(_numbers)}")
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _writes: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Return the keys below ``prefix``, sorted."""
        with self._lock:
            return sorted(key for key in self.content.get(bucket, {}) if key.startswith(prefix))

    def read(self, bucket: str, key: str) -> Stored | None:
        """Return an object, None if there is none."""
        with self._lock:
            return self.content.get(bucket, {}).get(key)

    def write(self, bucket: str, key: str, body: bytes) -> Stored:
        """Write an object.

        Raises:
            KeyConflictError: ``key`` is also a directory, or a directory of it is also an object.
        """
        with self._lock:
            objects = self.content.setdefault(bucket, {})
            parents = ["/".join(key.split("/")[:depth]) for depth in range(1, key.count("/") + 1)]
            if any(parent in objects for parent in parents) or any(other.startswith(key + "/") for other in objects):
                raise KeyConflictError(f"{key} is both an object and a directory")
            number = next(self._writes)
            etag = f'"{number:032x}"' if self.opaque else f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
            stored = objects[key] = Stored(body, etag, float(number))
            return stored

    def write_if(self, bucket: str, key: str, body: bytes, etag: str | None) -> Stored | None:
        """Write an object if it still has this ETag (None: if there is none); return None if it has not."""
        with self._lock:
            found = self.read(bucket, key)
            if (found.etag if found else None) != etag:
                return None
            return self.write(bucket, key, body)

    def remove(self, bucket: str, key: str) -> None:
        """Remove an object, if it is there."""
        with self._lock:
            self.content.get(bucket, {}).pop(key, None)


class MemoryStore:
    """One actor's way to one bucket of :class:`Buckets`."""

    def __init__(
        self, buckets: Buckets, bucket: str, watch: Callable[[Call], None] = lambda call: None, page: int = 1000
    ) -> None:
        """Reach ``bucket``; ``page`` entries are listed at a time."""
        self.buckets, self._bucket, self.watch, self._page = buckets, bucket, watch, page

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self._bucket

    @property
    def service(self) -> str:
        """The same for all stores of one :class:`Buckets`."""
        return self.buckets.service

    def get(self, key: str, most: int | None = None) -> tuple[bytes, str] | None:
        """Return content and ETag, None if there is no such object; of the content so many bytes, if that is said."""
        self._notify("get", key)
        found = self.buckets.read(self._bucket, key)
        self._notify("get", key, done=True)
        return (found.body[:most], found.etag) if found else None

    def get_head(self, key: str, size: int) -> bytes | None:
        """Return the first ``size`` bytes of an object; None if there is no such object."""
        found = self.get(key)
        return found[0][:size] if found is not None else None

    def head(self, key: str) -> Found | None:
        """Return size, ETag and checksum, None if there is no such object."""
        self._notify("head", key)
        found = self.buckets.read(self._bucket, key)
        self._notify("head", key, done=True)
        return self._found(found) if found else None

    def digest(self, key: str) -> Digest | None:
        """Read an object to its end; None if there is no such object."""
        found = self.get(key)
        if found is None:
            return None
        digester = Digester()
        digester.take(found[0])
        return digester.digest()

    def get_file(self, key: str, path: Path) -> int | None:
        """Write an object's content into a file; return its size, None if there is no such object."""
        found = self.get(key)
        return path.write_bytes(found[0]) if found is not None else None

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below ``prefix``."""
        last = ""
        while True:
            self._notify("list", prefix)
            keys = [key for key in self.buckets.keys(self._bucket, prefix) if not key.endswith("/")]
            keys = keys[bisect_right(keys, last) :][: self._page]
            entries = [(key, self.buckets.read(self._bucket, key)) for key in keys]
            self._notify("list", prefix, done=True)
            for key, found in entries:
                if found:
                    yield Entry(key, len(found.body), found.etag, found.modified)
            if len(keys) < self._page:
                return
            last = keys[-1]

    def put(self, key: str, body: bytes) -> None:
        """Write an object, whether or not there is one."""
        self._notify("put", key)
        self.buckets.write(self._bucket, key, body)
        self._notify("put", key, done=True)

    def put_file(self, key: str, path: Path) -> None:
        """Write an object with the content of a file, whether or not there is one."""
        self.put(key, path.read_bytes())

    def put_if(self, key: str, body: bytes, etag: str | None) -> str | None:
        """Write an object if it still has this ETag (None: if there is none)."""
        self._notify("put_if", key)
        written = self.buckets.write_if(self._bucket, key, body, etag)
        self._notify("put_if", key, done=True)
        return written.etag if written else None

    def copy(self, source: Place, key: str, size: int, etag: str) -> Found:
        """Copy ``source`` to ``key``, if it still has this size and ETag."""
        self._notify("copy", key)
        found = self.buckets.read(source.bucket, source.key)
        if found is None:
            raise VanishedError(f"{source.key} is gone")
        if (len(found.body), found.etag) != (size, etag):
            raise VanishedError(f"{source.key} has changed")
        copied = self.buckets.write(self._bucket, key, found.body)
        self._notify("copy", key, done=True)
        return self._found(copied)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that are missing are fine."""
        for key in keys:
            self._notify("delete", key)
            self.buckets.remove(self._bucket, key)
            self._notify("delete", key, done=True)

    def _found(self, stored: Stored) -> Found:
        checksum = "" if self.buckets.opaque else f"crc32:{zlib.crc32(stored.body)}"
        return Found(len(stored.body), stored.etag, checksum, plain=not self.buckets.opaque)

    def _notify(self, verb: str, key: str, done: bool = False) -> None:
        self.watch(Call(verb, key, done, self._bucket))
