"""Disposes of snapshots, and deletes what only they needed. I/O by the port.

Disposing is one write of the catalog. Deleting follows, may be interrupted, and may be done by several processes: what
is condemned is never needed again, unless the catalog was put back to an earlier version. So objects of published
snapshots are spared, and the catalog is read again before each request to delete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate_spark.contract.object_paths import SNAPSHOT_PREFIX
from tidegate_spark.snapshots import catalog, manifest, reentry
from tidegate_spark.snapshots.catalog import Catalog, State
from tidegate_spark.snapshots.copying import list_keys
from tidegate_spark.snapshots.repository import OBJECT_PREFIX, SnapshotRepository
from tidegate_spark.storage.store import NewerStorageError

KEYS_OF_REQUEST = 1000
"""So many objects S3 deletes by one request. A large state takes hundreds, between which a catalog may be put back."""

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Collected:
    """What was deleted."""

    snapshots: tuple[str, ...] = ()
    keys: int = 0


def dispose(repository: SnapshotRepository, name: str) -> Catalog:
    """Dispose of a snapshot, complete or not; one that is not there is fine.

    Raises:
        HeldError: somebody needs it.
    """
    return reentry.change(repository, lambda before: catalog.dispose(before, name))


def collect(repository: SnapshotRepository, now: float) -> Collected:
    """Delete everything that nothing needs.

    Raises:
        CatalogLostError: nothing is deleted without a catalog.
        Exception: what the store's client raises, NotDeletedError for one. What was not done is done by the next call.
    """
    reentry.enter_published(repository)
    listing, sparing = _list(repository), reentry.Sparing(repository)
    # The catalog from *after* the listing: an object that it does not name is a stray, or condemned.
    known = repository.change(lambda it: _without_strays(it, listing, sparing, now))
    going = sorted(name for name, it in known.snapshots.items() if it.state is State.DELETING)
    ends = {name: _delete_snapshot(repository, name) for name in going}
    keys, gone = sum(keys for keys, _ in ends.values()), [name for name, (_, all_gone) in ends.items() if all_gone]
    condemned = _delete_condemned(repository, known, sparing)
    keys += len(condemned)
    for name in known.ready():
        if listing.snapshots.get(name, 0) != known.snapshots[name].files:
            keys += _delete_beside(repository, name, known)
    repository.change(lambda it: catalog.forget_objects(catalog.forget(it, gone, now), condemned))
    return Collected(tuple(gone), keys)


def _without_strays(known: Catalog, listing: _Listing, sparing: reentry.Sparing, now: float) -> Catalog:
    """Condemn what was left by processes that wrote after their time; what is published is none of it."""
    after = catalog.condemn_strays(known, listing.snapshots, listing.objects, now)
    if not known.serial or not (after.condemned or after != known):
        return after  # a lost catalog is not replaced
    spared = sparing.spare(known)
    snapshots = [name for name in listing.snapshots if name not in spared.snapshots]
    # An object that an older catalog condemns may be needed by a snapshot of the abandoned history.
    return catalog.condemn_strays(
        catalog.forget_objects(known, spared.objects), snapshots, spared.without(listing.objects), now
    )


def _delete_condemned(repository: SnapshotRepository, known: Catalog, sparing: reentry.Sparing) -> frozenset[str]:
    """Delete what is still condemned of the shared objects; return what was deleted."""
    deleted = frozenset[str]()
    for page in _requests(sorted(known.condemned)):
        now = repository.read()
        condemned = sparing.spare(now).without(frozenset(page) & now.condemned)
        _delete(repository, [repository.key(manifest.object_key(name)) for name in sorted(condemned)])
        deleted |= condemned
    return deleted


@dataclass(frozen=True)
class _Listing:
    """What lies in the bucket, by right or not."""

    snapshots: dict[str, int]
    """Id -> files below ``snapshots/<id>/``."""
    objects: frozenset[str]


def _list(repository: SnapshotRepository) -> _Listing:
    snapshots: dict[str, int] = {}
    for key in list_keys(repository.store, repository.key(SNAPSHOT_PREFIX) + "/"):
        name, inside, _ = repository.below(key)[len(SNAPSHOT_PREFIX) + 1 :].partition("/")
        if inside:
            snapshots[name] = snapshots.get(name, 0) + 1
    objects = list_keys(repository.store, repository.key(OBJECT_PREFIX) + "/")
    return _Listing(snapshots, frozenset(repository.below(key)[len(OBJECT_PREFIX) + 1 :] for key in objects))


def _delete_snapshot(repository: SnapshotRepository, name: str) -> tuple[int, bool]:
    """Delete a snapshot's own files while the catalog has it so; return how many, and whether all were."""
    keys = list_keys(repository.store, repository.key(manifest.own_key(name)) + "/")
    deleted = 0
    # Delete the manifest first, so that no half-deleted snapshot looks whole.
    for page in _requests(sorted(keys, key=lambda key: (key != repository.manifest_key(name), key))):
        if not _is_going(repository.read(), name):
            return deleted, False
        deleted += _delete(repository, page)
    return deleted, True


def _is_going(now: Catalog, name: str) -> bool:
    """Return whether a snapshot was disposed of; another process may have deleted it."""
    entry = now.snapshots.get(name)
    return name in now.gone if entry is None else entry.state is State.DELETING


def _requests(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[at : at + KEYS_OF_REQUEST] for at in range(0, len(keys), KEYS_OF_REQUEST))


def _delete_beside(repository: SnapshotRepository, name: str, known: Catalog) -> int:
    """Delete what lies beside a snapshot's manifest and is not named there: copies that a newer batch made needless."""
    try:
        made = manifest.read(repository, name, known)
    except (manifest.UnreadableManifestError, NewerStorageError) as error:
        # Deleted by another process meanwhile, damaged, or of a newer format: which of its files it needs is not known.
        log.warning("nothing of snapshot %s is deleted: %s", name, error)
        return 0
    needed = {repository.manifest_key(name), *(repository.key(file.key) for file in made.files)}
    listed = list_keys(repository.store, repository.key(manifest.own_key(name)) + "/")
    return _delete(repository, [key for key in listed if key not in needed])


def _delete(repository: SnapshotRepository, keys: Sequence[str]) -> int:
    if keys:
        repository.store.delete(keys)
    return len(keys)
