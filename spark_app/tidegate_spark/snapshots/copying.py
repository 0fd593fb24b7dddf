"""Copies many objects concurrently and checks the results. I/O by the port."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tidegate_spark.storage.store import (
    Entry,
    Found,
    MismatchError,
    ObjectStore,
    Place,
    SnapshotError,
    VanishedError,
    agree,
)

LARGEST_CARRIED_BYTES = 1 << 30
CARRIED_AT_ONCE = 4
"""Between two stores objects go through this process's memory."""

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Copy:
    """One object to be copied."""

    source: Place
    size: int
    etag: str
    key: str


@dataclass(frozen=True)
class Progress:
    """How far it is."""

    files: int = 0
    bytes: int = 0
    of_files: int = 0
    of_bytes: int = 0


@dataclass(frozen=True)
class Copiers:
    """How copies are made."""

    number: int = 16
    """So many at a time, which cost this process little: the store does the work. 1: in the caller's own thread."""
    report: Callable[[Progress], None] = lambda progress: None
    """Called after each copy, in the caller's thread; what it raises ends the work, which can be begun again."""


USUAL = Copiers()


class TooLargeToCarryError(SnapshotError):
    """An object would have to go from one store to another, and this process could not hold it."""


def copy_all(
    store: ObjectStore, copies: Sequence[Copy], copiers: Copiers, done: dict[str, Found], origin: ObjectStore
) -> None:
    """Copy all of them from ``origin`` into ``store``; from one store to another their bytes go through this process.

    ``done`` gets what each key holds now, also if something is raised.

    Raises:
        VanishedError: a source is gone or has changed. No copy is under way any more, then as with every exception.
        MismatchError: a copy is not what was to be copied.
        TooLargeToCarryError: see there.
    """
    one: Callable[[Copy], Found] = lambda copy: store.copy(copy.source, copy.key, copy.size, copy.etag)  # noqa: E731
    if origin.service != store.service:
        one, copiers = partial(_carry, origin, store), replace(copiers, number=min(copiers.number, CARRIED_AT_ONCE))
    of_bytes, copied = sum(copy.size for copy in copies), 0
    for number, found in enumerate(in_parallel(copiers, one, copies)):
        done[copies[number].key] = found
        copied += copies[number].size
        copiers.report(Progress(number + 1, copied, len(copies), of_bytes))


def _carry(origin: ObjectStore, store: ObjectStore, copy: Copy) -> Found:
    if copy.size > LARGEST_CARRIED_BYTES:
        raise TooLargeToCarryError(
            f"{copy.source.key} has {copy.size} bytes, and between two stores ({origin.service} and {store.service}) "
            f"at most {LARGEST_CARRIED_BYTES} are carried: replicate the bucket with a tool of the store's first"
        )
    got = origin.get(copy.source.key)
    if got is None:
        raise VanishedError(f"{copy.source.key} is gone")
    body, etag = got
    if (len(body), etag) != (copy.size, copy.etag):
        raise VanishedError(f"{copy.source.key} has changed")
    store.put(copy.key, body)
    found = store.head(copy.key)
    md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
    if found is None or not agree(Found(len(body), f'"{md5}"', plain=True), found):
        raise MismatchError(f"{copy.key} is not what {copy.source.key} is")
    return found


def in_parallel(copiers: Copiers, function: Callable[[T], U], arguments: Iterable[T]) -> Iterator[U]:
    """Yield the results of ``function`` in order; it is called in as many threads as there are copiers."""
    if copiers.number == 1:
        yield from map(function, arguments)
        return
    # Few wait in the pool: at the process's end, Python lets a pool finish what was given to it.
    under_way: deque[Future[U]] = deque()
    with ThreadPoolExecutor(copiers.number, thread_name_prefix="tidegate-copier") as pool:
        try:
            for argument in arguments:
                if len(under_way) == 2 * copiers.number:
                    yield under_way.popleft().result()
                under_way.append(pool.submit(function, argument))
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def check_copies(listed: dict[str, Entry], expected: dict[str, Found]) -> None:
    """Check that a listing has all copies as they were made.

    Raises:
        VanishedError: a copy is not there.
        MismatchError: another object is in its place.
    """
    for key, copy in expected.items():
        entry = listed.get(key)
        if entry is None:
            raise VanishedError(f"{key} was copied and is gone")
        if not agree(copy, Found(entry.size, entry.etag)):
            raise MismatchError(f"{key} has {entry.size} bytes, and {copy.size} were copied")


def list_keys(store: ObjectStore, prefix: str) -> dict[str, Entry]:
    """Return all objects below ``prefix``, by key."""
    return {entry.key: entry for entry in store.list(prefix)}
