"""Reads and changes the catalog and the manifests of an application's snapshots. I/O by the port."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tidegate_spark.contract.object_paths import MANIFEST_FILE, SNAPSHOT_PREFIX
from tidegate_spark.snapshots import messages
from tidegate_spark.snapshots.catalog import Catalog, violations
from tidegate_spark.snapshots.catalog_json import decode, encode
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.s3_client import is_md5_of
from tidegate_spark.storage.store import Entry, SnapshotError, VanishedError

T = TypeVar("T")

OBJECT_PREFIX = "objects"
CATALOG_FILE = "catalog.json"
ATTEMPTS = 50
"""Each is lost to a write of another process, and those get somewhere: nobody writes in vain so often."""
LONGEST_PAUSE_SECONDS = 1.0


class CatalogContendedError(SnapshotError):
    """The catalog changed at each attempt to change it."""


class CatalogLostError(SnapshotError):
    """There are snapshots and no catalog."""


@dataclass(frozen=True)
class SnapshotRepository(AppObjects):
    """The snapshots below one application's prefix of a bucket."""

    pause: Callable[[float], None] = time.sleep
    """Waits for so many seconds."""

    @property
    def catalog_key(self) -> str:
        """The catalog's."""
        return self.key(SNAPSHOT_PREFIX, CATALOG_FILE)

    def manifest_key(self, name: str) -> str:
        """Return the key of a snapshot's manifest."""
        return self.key(SNAPSHOT_PREFIX, name, MANIFEST_FILE)

    def checkpoints(self, lineage: int) -> dict[str, dict[str, Entry]]:
        """Return query -> path -> entry, of everything that a lineage has now."""
        root = self.lineage_key(lineage) + "/"
        checkpoints: dict[str, dict[str, Entry]] = {}
        for entry in self.store.list(root):
            query, _, path = entry.key[len(root) :].partition("/")
            if path:
                checkpoints.setdefault(query, {})[path] = entry
        return checkpoints

    def reader(self, listing: Mapping[str, Entry]) -> Callable[[str], bytes]:
        """Return what reads the files of a checkpoint, by their paths; it raises VanishedError if one is gone."""

        def read(path: str) -> bytes:
            return _present(listing, path, self.store.get)[0]

        return read

    def head_reader(self, listing: Mapping[str, Entry]) -> Callable[[str, int], bytes]:
        """Return what reads so many bytes at the beginning of a file; as :meth:`reader`."""

        def read(path: str, size: int) -> bytes:
            return _present(listing, path, lambda key: self.store.get_head(key, size))

        return read

    def read(self) -> Catalog:
        """Return the catalog as it is now, an empty one if there is none.

        Raises:
            UnreadableCatalogError: what stands there is none.
        """
        return self._load()[0]

    def change(self, transition: Callable[[Catalog], Catalog]) -> Catalog:
        """Change the catalog by a conditional write, again from the start if somebody else was faster.

        Args:
            transition: from the catalog as it is to the one to be written. It may be called several times; what it
                raises is raised. It gives back an equal catalog if what it does was done, since an attempt whose
                answer was lost is repeated.

        Returns:
            The catalog with the change.

        Raises:
            CatalogContendedError: others were faster all the time.
            CatalogLostError: somebody removed the catalog, and snapshots are left.
        """
        for attempt in range(ATTEMPTS):
            before, etag = self._load()
            after = transition(before)
            if after == before:
                return before
            if etag is None and self._is_lost():
                raise CatalogLostError(messages.catalog_lost(self.catalog_key))
            after = dataclasses.replace(after, serial=before.serial + 1)
            wrong = violations(after)
            if wrong:
                raise AssertionError(f"a catalog that must not be: {'; '.join(wrong)}")
            if self.store.put_if(self.catalog_key, encode(after), etag) is not None:
                return after
            self._wait(attempt)
        raise CatalogContendedError(f"{self.catalog_key} was changed {ATTEMPTS} times by others meanwhile")

    def _load(self) -> tuple[Catalog, str | None]:
        for attempt in range(ATTEMPTS):
            found = self.store.get(self.catalog_key)
            if found is None:
                return Catalog(), None
            if self._belong_together(*found):
                return decode(found[0]), found[1]
            self._wait(attempt)
        raise CatalogContendedError(f"{self.catalog_key} was read {ATTEMPTS} times with the ETag of another content")

    def _belong_together(self, body: bytes, etag: str) -> bool:
        """Return whether the ETag is that of the content, as far as that can be known.

        A store that keeps the two in different files may answer with an old content and a new ETag while somebody
        writes. A write on such a condition would undo what was written.
        """
        if is_md5_of(body, etag):
            return True
        found = self.store.head(self.catalog_key)
        return found is not None and not found.plain

    def _wait(self, attempt: int) -> None:
        self.pause(random.uniform(0, min(LONGEST_PAUSE_SECONDS, 0.01 * 2**attempt)))  # noqa: S311 - no secret

    def _is_lost(self) -> bool:
        prefixes = (self.key(SNAPSHOT_PREFIX) + "/", self.key(OBJECT_PREFIX) + "/")
        if all(next(iter(self.store.list(prefix)), None) is None for prefix in prefixes):
            return False
        # Whoever made the catalog meanwhile may have put something there by right.
        return self.store.get(self.catalog_key) is None


def _present(listing: Mapping[str, Entry], path: str, get: Callable[[str], T | None]) -> T:
    entry = listing.get(path)
    found = get(entry.key) if entry is not None else None
    if found is None:
        raise VanishedError(f"{entry.key if entry is not None else path} is gone")
    return found
