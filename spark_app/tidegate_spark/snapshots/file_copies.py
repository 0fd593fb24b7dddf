"""The copies of a snapshot's files: which exist already, and making the others. I/O by the object store's port.

The name of a copy says what it was copied from, so every process writes the same bytes there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidegate_spark.snapshots import catalog, manifest
from tidegate_spark.snapshots.catalog import Catalog
from tidegate_spark.snapshots.copying import Copiers, Copy, check_copies, copy_all, list_keys
from tidegate_spark.snapshots.manifest import File
from tidegate_spark.snapshots.repository import OBJECT_PREFIX, SnapshotRepository
from tidegate_spark.storage.store import Entry, Found, Place, SnapshotError


@dataclass(frozen=True)
class Source:
    """One file of the checkpoints that is to be in the snapshot."""

    query: str
    path: str
    entry: Entry
    shared: bool

    @property
    def name(self) -> str:
        """Of the file, without its folder."""
        return self.path.rpartition("/")[2]


def copy_files(  # noqa: PLR0913 - what is known of the copies are two of them
    repository: SnapshotRepository,
    name: str,
    sources: Sequence[Source],
    copied: dict[str, Found],
    copiers: Copiers,
    *,
    doubtful: bool,
) -> tuple[File, ...]:
    """Copy what is not there yet, look at everything again, and return it as the manifest's files.

    Args:
        repository: the application's.
        name: the snapshot's.
        sources: what is to be in it.
        copied: what earlier attempts of this process copied; gets what this one does.
        copiers: how files are copied, and what is called after each.
        doubtful: whether somebody may have deleted what complete snapshots need.

    Raises:
        VanishedError: Spark has cleaned up a file meanwhile.
        SnapshotError: two files that may differ have one name, or a copy is not what was copied.
    """
    objects = _refer(repository, name, sources)
    keys = [(source, _key(repository, name, source, objects)) for source in sources]
    there = _there(repository, name, objects, doubtful=doubtful)
    missing = {
        key: Copy(Place(repository.store.bucket, source.entry.key), source.entry.size, source.entry.etag, key)
        for source, key in keys
        if not _is_copied(there.get(key), source, copied.get(key))
    }
    copy_all(repository.store, list(missing.values()), copiers, copied, repository.store)
    listed = _listed(repository, name)
    expected = {key: copied.get(key, Found(source.entry.size, source.entry.etag)) for source, key in keys}
    check_copies(listed, expected)
    return tuple(
        File(
            source.query,
            source.path,
            repository.below(key),
            listed[key].size,
            listed[key].etag,
            copied[key].checksum if key in copied else "",
            source.shared,
        )
        for source, key in keys
    )


@dataclass(frozen=True)
class _Objects:
    """The shared objects that the snapshot refers to."""

    names: dict[str, str]
    """File name -> object."""
    new: frozenset[str]
    """Brought in just now: nobody has copied them."""
    sizes: Mapping[str, int]
    """Of those that a complete snapshot needs: they are there."""


def _refer(repository: SnapshotRepository, name: str, sources: Iterable[Source]) -> _Objects:
    """Refer to an object for each shared file."""
    sizes: dict[str, int] = {}
    for source in sources:
        if source.shared and sizes.setdefault(source.name, source.entry.size) != source.entry.size:
            raise SnapshotError(f"two files called {source.name} have different sizes: {source.entry.key} is one")
    before, names = Catalog(), dict[str, str]()

    def transition(known: Catalog) -> Catalog:
        nonlocal before, names
        before = known
        known, names = catalog.reserve(known, name, sizes)
        return known

    after = repository.change(transition)
    needed = frozenset[str]().union(*(after.snapshots[other].objects for other in after.ready()))
    return _Objects(
        names,
        frozenset(names.values()) - before.objects.keys(),
        {known: size for known, size in after.objects.items() if known in needed},
    )


def _key(repository: SnapshotRepository, name: str, source: Source, objects: _Objects) -> str:
    """Return the key of a file's copy.

    One that belongs to the snapshot alone names the source's content. If Spark writes a file again, the copies of both
    have different names; a process that was left over does not replace what a manifest names.
    """
    if source.shared:
        return repository.key(manifest.object_key(objects.names[source.name]))
    content = hashlib.sha256(f"{source.entry.size} {source.entry.etag}".encode()).hexdigest()[:12]
    return repository.key(manifest.own_key(name), "files", source.query, f"{source.path}.{content}")


def _there(repository: SnapshotRepository, name: str, objects: _Objects, doubtful: bool) -> dict[str, Entry]:
    """Return what need not be copied, as far as it can be known; objects are listed only if that helps."""
    known = {repository.key(manifest.object_key(it)): size for it, size in objects.sizes.items()}
    if doubtful or not objects.new.union(objects.sizes).issuperset(objects.names.values()):
        return _listed(repository, name)
    return {**_own(repository, name), **{key: Entry(key, size, "") for key, size in known.items()}}


def _listed(repository: SnapshotRepository, name: str) -> dict[str, Entry]:
    return {**_own(repository, name), **list_keys(repository.store, repository.key(OBJECT_PREFIX) + "/")}


def _own(repository: SnapshotRepository, name: str) -> dict[str, Entry]:
    return list_keys(repository.store, repository.key(manifest.own_key(name), "files") + "/")


def _is_copied(entry: Entry | None, source: Source, copy: Found | None) -> bool:
    if entry is None or entry.size != source.entry.size:
        return False
    # An object is whole or does not exist, and its name identifies the content. For the snapshot's own files the
    # store's checksum is cheap, too.
    return source.shared or entry.etag in (source.entry.etag, copy.etag if copy is not None else "")
