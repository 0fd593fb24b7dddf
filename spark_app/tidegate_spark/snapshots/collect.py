"""Removes snapshots that somebody disposes of, and what they alone needed. I/O through the port.

Disposing is one write of the catalog. Deleting comes after it, can be ended at any point, and be done by several at
once: what is condemned is never needed again, so it does not matter how late somebody deletes it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_spark.objects.store import NewerStorageError
from tidegate_spark.snapshots import catalog, manifest
from tidegate_spark.snapshots.catalog import Catalog, State
from tidegate_spark.snapshots.copying import list_keys
from tidegate_spark.snapshots.library import OBJECT_PREFIX, SNAPSHOT_PREFIX, Library

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Collected:
    """What was deleted."""

    snapshots: tuple[str, ...] = ()
    keys: int = 0


def dispose(library: Library, name: str) -> Catalog:
    """Dispose of a snapshot, complete or not; one that is not there is fine.

    Raises:
        HeldError: somebody needs it.
    """
    return library.change(lambda before: catalog.dispose(before, name))


def collect(library: Library, now: float) -> Collected:
    """Delete everything that nothing needs.

    Raises:
        CatalogLostError: nothing is deleted without a catalog.
        Exception: what the store's client raises, NotDeletedError for one. What was not done is done by the next call.
    """
    listing = _list(library)
    # The catalog of *after* the listing: what it does not name then was never put there by right, or is condemned.
    known = library.change(lambda it: catalog.condemn_strays(it, listing.snapshots, listing.objects, now))
    going = sorted(name for name, it in known.snapshots.items() if it.state is State.DELETING)
    keys = sum(_delete_snapshot(library, name) for name in going)
    keys += _delete(library, [library.key(manifest.object_key(name)) for name in sorted(known.condemned)])
    for name in known.ready():
        if listing.snapshots.get(name, 0) != known.snapshots[name].files:
            keys += _delete_beside(library, name, known)
    library.change(lambda it: catalog.forget_objects(catalog.forget(it, going, now), known.condemned))
    return Collected(tuple(going), keys)


@dataclass(frozen=True)
class _Listing:
    """What lies in the bucket, by right or not."""

    snapshots: dict[str, int]
    """Id -> files below ``snapshots/<id>/``."""
    objects: frozenset[str]


def _list(library: Library) -> _Listing:
    snapshots: dict[str, int] = {}
    for key in list_keys(library.store, library.key(SNAPSHOT_PREFIX) + "/"):
        name, inside, _ = library.below(key)[len(SNAPSHOT_PREFIX) + 1 :].partition("/")
        if inside:
            snapshots[name] = snapshots.get(name, 0) + 1
    objects = list_keys(library.store, library.key(OBJECT_PREFIX) + "/")
    return _Listing(snapshots, frozenset(library.below(key)[len(OBJECT_PREFIX) + 1 :] for key in objects))


def _delete_snapshot(library: Library, name: str) -> int:
    keys = list_keys(library.store, library.key(manifest.own_key(name)) + "/")
    # Nobody is to take for whole what is half deleted.
    return _delete(library, sorted(keys, key=lambda key: (key != library.manifest_key(name), key)))


def _delete_beside(library: Library, name: str, known: Catalog) -> int:
    """Delete what lies beside a snapshot's manifest and is not named there: copies that a newer batch made needless."""
    try:
        made = manifest.read(library, name, known)
    except (manifest.UnreadableManifestError, NewerStorageError) as error:
        # Deleted by another process meanwhile, damaged, or of a newer format: which of its files it needs is not known.
        log.warning("nothing of snapshot %s is deleted: %s", name, error)
        return 0
    needed = {library.manifest_key(name), *(library.key(file.key) for file in made.files)}
    listed = list_keys(library.store, library.key(manifest.own_key(name)) + "/")
    return _delete(library, [key for key in listed if key not in needed])


def _delete(library: Library, keys: Sequence[str]) -> int:
    if keys:
        library.store.delete(keys)
    return len(keys)
