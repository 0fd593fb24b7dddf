"""The manifest of a snapshot, ``snapshots/<id>/manifest.json``, published when all files are there.

I/O only in ``read``, by the repository.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.contract.object_paths import SNAPSHOT_PREFIX, is_below
from tidegate_spark.control_log.snapshot_state import Kept
from tidegate_spark.snapshots.catalog import (
    Catalog,
    NotReadyError,
    Snapshot,
    State,
    UnknownSnapshotError,
)
from tidegate_spark.snapshots.repository import OBJECT_PREFIX, SnapshotRepository
from tidegate_spark.storage.store import SnapshotError, naming_newer

VERSION = 1


class UnreadableManifestError(SnapshotError):
    """The manifest is missing, is none, or is not the one that was published."""


class DamagedError(SnapshotError):
    """A complete snapshot lacks files, or has others than were published."""

    def __init__(self, message: str, number: int) -> None:
        """Say how many there are beside the one that ``message`` names."""
        super().__init__(message if number == 1 else f"{message} (and {number - 1} more)")


@dataclass(frozen=True)
class Application:
    """Whose state it is."""

    namespace: str
    name: str
    uid: str
    lineage: int
    epoch: int = 0


NAME = "name"
"""The fact that is a query's name, if its checkpoint's directory has another one."""
LOCATION = "location"
"""The fact that is the digest of the checkpointLocation that the script gave a query which it names."""


@dataclass(frozen=True)
class QueryAt:
    """One query at its batch."""

    batch: int
    offsets: str
    """The content of ``offsets/<batch>``, verbatim."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Of the checkpoint: state store provider, format …"""

    def called(self, directory: str) -> str:
        """Return the query's name; ``directory``: of its checkpoint, mostly the same."""
        return str(self.facts.get(NAME) or directory)

    @property
    def location(self) -> str:
        """The digest of its location, empty if none is known."""
        return str(self.facts.get(LOCATION) or "")


@dataclass(frozen=True)
class File:
    """One file."""

    query: str
    path: str
    """In the query's checkpoint."""
    key: str
    """Of the copy, relative to the application's prefix, so that a bucket may be moved as a whole."""
    size: int
    etag: str
    checksum: str = ""
    shared: bool = False
    """Below ``objects/``."""


@dataclass(frozen=True)
class Manifest:
    """A complete snapshot."""

    version: int
    id: str
    created: float
    parent: str
    application: Application
    queries: dict[str, QueryAt]
    files: tuple[File, ...]
    image: str = ""
    spark_version: str = ""
    tidegate_version: str = ""
    spec_hash: str = ""
    """Of the version whose state it is, as the operator distinguishes them; empty if it is not known."""
    spec: str = ""
    """What makes it, as JSON: path in the spec -> value, without secrets; empty if it is not known, or is long."""
    control: Kept | None = None
    """What is in force of the control stream; None if no query takes part."""
    locations: dict[str, str] = field(default_factory=dict)
    """Query to which the script gives no name -> digest of the checkpointLocation that it gave it, whether it had a
    batch or not; empty of one without a location."""

    def body(self) -> bytes:
        """Return it as canonical JSON: equal manifests have equal bytes."""
        return to_json(self).encode()

    def named_locations(self) -> dict[str, str]:
        """Return which location each query had that the script names: name -> digest."""
        return {query.called(at): query.location for at, query in self.queries.items() if query.location}

    def summary(self, published: bytes) -> Snapshot:
        """Return what the catalog says of it; ``published`` is the document as it stands in the bucket."""
        return Snapshot(
            State.READY,
            self.created,
            self.application.lineage,
            self.parent,
            objects=frozenset(file.key.rpartition("/")[2] for file in self.files if file.shared),
            queries={name: query.batch for name, query in self.queries.items()},
            digest=digest(published),
            files=1 + len({file.key for file in self.files if not file.shared}),
            bytes=sum(size for _, size in {(file.key, file.size) for file in self.files}),
        )

    def new_bytes(self) -> int:
        """Return how much of it no earlier snapshot had."""
        own = f".{self.id}"
        return sum(size for key, size in {(f.key, f.size) for f in self.files if not f.shared or f.key.endswith(own)})


def digest(body: bytes) -> str:
    """Return a manifest's digest."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def parse(body: bytes, key: str) -> Manifest:
    """Return the manifest of a document.

    Raises:
        NewerStorageError: a newer Tidegate wrote it; the message names ``key``.
        UnreadableManifestError: it is none; the message names ``key``.
    """
    try:
        with naming_newer(key):
            made = from_stored(Manifest, body, VERSION)
        for query in (*made.queries, *made.locations):
            _check_query(query)
        for file in made.files:
            _check_query(file.query)
            if not (is_below(file.path) and is_below(file.key)):
                raise ValueError(f"a file leads out of its folder: {file.path!r:.200}, of {file.key!r:.200}")
    except ValueError as error:
        raise UnreadableManifestError(f"{key} cannot be read as a manifest: {error}") from error
    return made


def _check_query(name: str) -> None:
    # A manifest that is imported may have been written by anybody.
    if "/" in name or not is_below(name):
        raise ValueError(f"a query that no folder can be called: {name!r:.200}")


def read(repository: SnapshotRepository, name: str, catalog: Catalog) -> Manifest:
    """Return the manifest of a snapshot that ``catalog`` calls ready.

    Raises:
        UnknownSnapshotError: the catalog does not know it, or it is on its way out.
        NotReadyError: it is not complete.
        UnreadableManifestError: what stands in the bucket is not what was published.
        NewerStorageError: a newer Tidegate published it.
    """
    snapshot = catalog.snapshots.get(name)
    if snapshot is None or snapshot.state is State.DELETING:
        raise UnknownSnapshotError(f"there is no snapshot {name} in {repository.store.bucket}/{repository.prefix}")
    if snapshot.state is not State.READY:
        raise NotReadyError(f"snapshot {name} is not complete yet")
    key = repository.manifest_key(name)
    found = repository.store.get(key)
    if found is None:
        raise UnreadableManifestError(f"{key} is gone")
    if digest(found[0]) != snapshot.digest:
        raise UnreadableManifestError(f"{key} is not the manifest that was published")
    return parse(found[0], key)


def object_key(name: str) -> str:
    """Return the key of a shared object, relative to the application's prefix."""
    return f"{OBJECT_PREFIX}/{name}"


def own_key(name: str) -> str:
    """Return the key, relative to the application's prefix, below which a snapshot's own files are."""
    return f"{SNAPSHOT_PREFIX}/{name}"
