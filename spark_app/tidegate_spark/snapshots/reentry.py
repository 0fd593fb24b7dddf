"""Adds published snapshots that the catalog lacks, because it was replaced by an older one. I/O by the port.

A person restored an earlier version of the catalog. Objects that a manifest names are not condemned, and its snapshot
is entered once every file was listed. Its holders are lost: only the catalog had them.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from tidegate_spark.contract.object_paths import MANIFEST_FILE, SNAPSHOT_PREFIX
from tidegate_spark.snapshots import catalog, manifest
from tidegate_spark.snapshots.catalog import Catalog, NotReadyError, UnknownSnapshotError
from tidegate_spark.snapshots.copying import list_keys
from tidegate_spark.snapshots.manifest import Manifest
from tidegate_spark.snapshots.repository import OBJECT_PREFIX, CatalogContendedError, SnapshotRepository
from tidegate_spark.storage.store import Entry, NewerStorageError

ATTEMPTS = 10
"""Each is lost to a write of another process."""

log = logging.getLogger("tidegate")


class _ChangedError(Exception):
    """The catalog is not the one from before the listing."""


def enter_published(repository: SnapshotRepository, name: str = "") -> Catalog:
    """Enter what is published, whole, and not in the catalog as complete; return the catalog as it is then.

    Args:
        repository: the application's.
        name: the only one that matters; empty for all.

    Raises:
        CatalogContendedError: others changed the catalog all the time.
        Exception: what the store's client raises.
    """
    for _ in range(ATTEMPTS):
        before = repository.read()
        if not before.serial:
            return before  # lost as a whole: that is for a person
        # The catalog of *before* the listing, and the same one when they are entered: what was listed and condemned
        # since, or is deleted by now because it was condemned earlier, is in none of them.
        entered = _entered(repository, before, _published(repository, before, name))
        if entered == before:
            return before
        try:
            known = change(repository, partial(_unchanged, before, entered))
        except _ChangedError:
            continue
        names = sorted(set(known.ready()) - set(before.ready()))
        log.warning("the catalog was older than snapshots %s: they are entered again", ", ".join(names))
        return known
    raise CatalogContendedError(f"{repository.catalog_key} was changed {ATTEMPTS} times by others meanwhile")


def enter_if_published(repository: SnapshotRepository, name: str) -> None:
    """Enter a snapshot again that was complete before the catalog was put back, if this is one.

    Raises:
        DamagedError: it lacks files. What there is stays: they may be restored.
        Exception: as :func:`enter_published`.
    """
    if (
        not catalog.may_be_entered(repository.read(), name)
        or repository.store.get(repository.manifest_key(name)) is None
    ):
        return
    if catalog.may_be_entered(enter_published(repository, name), name):
        raise manifest.DamagedError(f"snapshot {name} was complete before, and is not whole any more", 1)


def hold(repository: SnapshotRepository, name: str, holder: str) -> Catalog:
    """Hold a snapshot as :func:`tidegate_spark.snapshots.catalog.hold` does, also one that is to be entered again."""
    try:
        return repository.change(lambda it: catalog.hold(it, name, holder))
    except (UnknownSnapshotError, NotReadyError):
        enter_published(repository, name)
    return repository.change(lambda it: catalog.hold(it, name, holder))


def change(repository: SnapshotRepository, transition: Callable[[Catalog], Catalog]) -> Catalog:
    """Change the catalog as :meth:`SnapshotRepository.change` does; what published snapshots need stays.

    Where the catalog does not know them, it says of what they share with others that nobody needs it.
    """
    sparing = Sparing(repository)

    def spared(known: Catalog) -> Catalog:
        after = transition(known)
        new = after.condemned - known.condemned
        if not new:
            return after
        return dataclasses.replace(after, condemned=known.condemned | sparing.spare(known).without(new))

    return repository.change(spared)


@dataclass(frozen=True)
class Spared:
    """What is not condemned although the catalog does not know it."""

    snapshots: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    everything: bool = False
    """One of the manifests cannot be read: which objects it names is not known."""

    def without(self, objects: frozenset[str]) -> frozenset[str]:
        """Return those of ``objects``, by name, that may be condemned."""
        return frozenset() if self.everything else objects - self.objects


@dataclass
class Sparing:
    """Finds out what is to be spared; a manifest is read once."""

    repository: SnapshotRepository
    _read: dict[str, Manifest | None] = field(default_factory=dict)

    def spare(self, known: Catalog) -> Spared:
        """Return what published snapshots name that ``known`` does not have.

        To be called with a catalog that was read *after* the listing whose strays are condemned, and is written on the
        condition that it is still that one: whatever was complete before has its manifest by now.
        """
        names = _unknown(known, _manifests(self.repository))
        for name in names:
            if name not in self._read:
                self._read[name] = _manifest_of(self.repository, name)
        made = [self._read[name] for name in names]
        return Spared(
            frozenset(names),
            frozenset(file.key.rpartition("/")[2] for it in made if it is not None for file in it.files if file.shared),
            None in made,
        )


# --- steps -----------------------------------------------------------------------------------------------------------


def _unchanged(before: Catalog, after: Catalog, now: Catalog) -> Catalog:
    if now != before:
        raise _ChangedError
    return after


def _published(repository: SnapshotRepository, known: Catalog, name: str) -> list[Manifest]:
    """Return the manifests of what is not complete in the catalog, the oldest first."""
    names = [name] if name else _unknown(known, _manifests(repository))
    found = (_manifest_of(repository, each) for each in _unknown(known, names))
    return sorted((made for made in found if made is not None), key=lambda made: (made.created, made.id))


def _entered(repository: SnapshotRepository, known: Catalog, published: list[Manifest]) -> Catalog:
    if not published:
        return known
    objects = list_keys(repository.store, repository.key(OBJECT_PREFIX) + "/")
    for made in published:
        own = list_keys(repository.store, repository.key(manifest.own_key(made.id)) + "/")
        if is_listed(repository, made, {**own, **objects}):
            body = repository.store.get(repository.manifest_key(made.id))
            known = known if body is None else _with(known, made, body[0])
    return known


def _with(known: Catalog, made: Manifest, body: bytes) -> Catalog:
    sizes = {file.key.rpartition("/")[2]: file.size for file in made.files if file.shared}
    return catalog.enter(known, made.id, made.summary(body), sizes)


def is_listed(repository: SnapshotRepository, made: Manifest, listed: Mapping[str, Entry]) -> bool:
    """Return whether every file that a manifest names is in a listing, with its size; pure."""
    entries = ((file, listed.get(repository.key(file.key))) for file in made.files)
    return all(entry is not None and entry.size == file.size for file, entry in entries)


def _unknown(known: Catalog, names: Collection[str]) -> list[str]:
    return sorted(name for name in names if catalog.may_be_entered(known, name))


def _manifests(repository: SnapshotRepository) -> list[str]:
    return list(_ids_with_manifest(repository, list_keys(repository.store, repository.key(SNAPSHOT_PREFIX) + "/")))


def _ids_with_manifest(repository: SnapshotRepository, listed: Iterable[str]) -> Iterator[str]:
    for key in listed:
        name, _, inside = repository.below(key)[len(SNAPSHOT_PREFIX) + 1 :].partition("/")
        if inside == MANIFEST_FILE:
            yield name


def _manifest_of(repository: SnapshotRepository, name: str) -> Manifest | None:
    """Return a published manifest, None if there is none (any more) that can be read."""
    key = repository.manifest_key(name)
    found = repository.store.get(key)
    try:
        made = manifest.parse(found[0], key) if found is not None else None
    except (manifest.UnreadableManifestError, NewerStorageError) as error:
        log.warning("snapshot %s is left as it is: %s", name, error)
        return None
    return made if made is not None and made.id == name else None
