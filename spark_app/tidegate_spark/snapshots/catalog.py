"""The catalog of snapshots as a value: what they share, and what may be deleted. Pure.

It is one object, ``snapshots/catalog.json``, changed by conditional writes only
(:mod:`tidegate_spark.snapshots.repository`), by any number of processes. Each function takes a catalog and returns the
next one, or an equal one if its change was made before, so it can be repeated after a lost answer.

Why deleting is safe:

1. The name of an object is never used again after it was condemned. Names end in the id of the snapshot that brought
   them in, are made only while that one is being taken, and it gives none back before that is over.
2. A reference is in the catalog before anything relies on an object. The write that removes the last one condemns it.
3. Deleted are condemned objects, files of snapshots in state ``deleting``, and files beside a snapshot's manifest that
   it does not name. Anything else is condemned first; it is listed *before* the catalog is read, and every rightful
   object was in the catalog before it was put.
4. A snapshot that somebody holds is never put into ``deleting``.
5. A person may put an earlier version of the catalog back. So a published snapshot's objects are not condemned as
   strays (:mod:`tidegate_spark.snapshots.reentry`), and an id whose strays were condemned is not begun again: a process
   that deletes them may be slow.
6. An id is not used again, and is remembered for :data:`MEMORY_SECONDS` after its snapshot, or after a disposal that
   came before anybody began it: a slow process could still come with it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tidegate_spark.storage.store import SnapshotError

MEMORY_SECONDS = 7 * 24 * 3600.0
"""Far longer than any process outlives the snapshot that it works on."""

_ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class State(str, Enum):
    """Of a snapshot."""

    TAKING = "taking"
    READY = "ready"
    DELETING = "deleting"


class UnknownSnapshotError(SnapshotError):
    """There is no such snapshot."""


class DisposedError(SnapshotError):
    """The snapshot was deleted, maybe while it was being taken."""


class NotReadyError(SnapshotError):
    """The snapshot is not complete yet."""


class NotBeingTakenError(SnapshotError):
    """The snapshot is complete already."""


class HeldError(SnapshotError):
    """Somebody needs the snapshot."""


@dataclass(frozen=True)
class Snapshot:
    """One snapshot, as far as others need to know; everything else is in its manifest."""

    state: State
    created: float
    """When it was begun; seconds since the epoch."""
    lineage: int = 0
    parent: str = ""
    manual: bool = False
    """Asked for by a person: no retention removes it."""
    objects: frozenset[str] = frozenset()
    """Names of the shared objects that it needs, or may come to need while it is being taken."""
    holders: frozenset[str] = frozenset()
    """Who needs it: forks, upgrades, exports … whatever their names are."""
    queries: Mapping[str, int] = field(default_factory=dict)
    """Query -> batch; from here on set when it is ready."""
    sequence: int = 0
    """Grows from one that became ready to the next."""
    digest: str = ""
    """Of the manifest."""
    files: int = 0
    """Below ``snapshots/<id>/``, the manifest included."""
    bytes: int = 0
    """All that it needs, shared or not."""


@dataclass(frozen=True)
class Catalog:
    """Everything; equal catalogs mean the same."""

    serial: int = 0
    """Counts the writes, so that no content comes twice and a condition on it means what it says."""
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    objects: Mapping[str, int] = field(default_factory=dict)
    """Name -> size of every shared object that a snapshot refers to, in the order in which they came."""
    condemned: frozenset[str] = frozenset()
    """Names of objects that nobody refers to and that may not be deleted yet."""
    gone: Mapping[str, float] = field(default_factory=dict)
    """Id -> when it was removed."""

    def ready(self) -> list[str]:
        """Return the ids of the snapshots that are ready, in the order in which they became so."""
        ids = [name for name, snapshot in self.snapshots.items() if snapshot.state is State.READY]
        return sorted(ids, key=lambda name: self.snapshots[name].sequence)


def is_an_upgrades_own(name: str, snapshot: Snapshot) -> bool:
    """Return whether an upgrade keeps a snapshot for itself: it holds its own under their own names.

    Such a one has no resource that people could find, and goes with the next upgrade.
    """
    return name in snapshot.holders


def is_id(name: str) -> bool:
    """Return whether a snapshot can be called so."""
    return _ID.fullmatch(name) is not None


# --- taking ----------------------------------------------------------------------------------------------------------


def begin(catalog: Catalog, name: str, wanted: Snapshot) -> Catalog:
    """Enter a snapshot that is about to be taken; one that is there stays as it is, unless it comes to another lineage.

    A copy may be under way when its application is rolled back; it is then taken of what is gone on with.

    Args:
        catalog: the catalog.
        name: the snapshot's id, unique for ever.
        wanted: when it was begun, the lineage, whether a person asks for it, and who holds it from the first; its
            ``queries`` are the batches that it must be at, if it must be at some, and its ``parent`` is what the
            lineage began with: that of its first snapshot. All others have the one before them in the lineage.

    Raises:
        DisposedError: it was there, and is gone or going.
        SnapshotError: that is no id.
    """
    if not is_id(name):
        raise SnapshotError(f"{name!r} is no id of a snapshot: up to 63 of a-z and 0-9, and - between them")
    known = catalog.snapshots.get(name)
    if name in catalog.gone or (known is not None and known.state is State.DELETING):
        raise DisposedError(f"snapshot {name} was deleted")
    if known is not None and (known.state is State.READY or known.lineage == wanted.lineage):
        return catalog
    before = [other for other in catalog.ready() if _may_be_parent(other, catalog.snapshots[other], wanted)]
    parent = before[-1] if before else wanted.parent
    new = known or dataclasses.replace(wanted, state=State.TAKING, queries={})
    return _with(catalog, name, dataclasses.replace(new, lineage=wanted.lineage, parent=parent))


def _may_be_parent(name: str, other: Snapshot, wanted: Snapshot) -> bool:
    """Return whether a snapshot of the same history comes before another one, and people can find it.

    The pin of a version that is rolled back may be completed after others were taken of what is rolled back with it.
    """
    if other.lineage != wanted.lineage or is_an_upgrades_own(name, other):
        return False
    return all(batch <= wanted.queries.get(query, batch) for query, batch in other.queries.items())


def reserve(catalog: Catalog, name: str, wanted: Mapping[str, int]) -> tuple[Catalog, dict[str, str]]:
    """Refer to a shared object for each file that the snapshot needs: to one that is there, or to a new one.

    An object that is referred to need not be in the store: whoever brought its name in may have ended before the copy.
    Whoever refers to it may copy it, since a shared file's name stands for its content.

    Args:
        catalog: the catalog.
        name: of a snapshot that is being taken.
        wanted: file name -> size.

    Returns:
        The catalog, and file name -> name of the object.

    Raises:
        DisposedError: it was deleted meanwhile.
        NotBeingTakenError: it is complete: another process was faster.
    """
    snapshot = _being_taken(catalog, name)
    live = {(file_of(known), size): known for known, size in catalog.objects.items()}
    names = {file: live.get((file, size), f"{file}.{name}") for file, size in wanted.items()}
    sizes = {names[file]: size for file, size in wanted.items()}
    for known, size in sizes.items():
        if catalog.objects.get(known, size) != size:
            raise SnapshotError(f"{file_of(known)} had {catalog.objects[known]} bytes before, and now it has {size}")
    if snapshot.objects.issuperset(sizes):
        return catalog, names
    added = dataclasses.replace(catalog, objects={**catalog.objects, **sizes})
    return _with(added, name, dataclasses.replace(snapshot, objects=snapshot.objects | sizes.keys())), names


def finish(catalog: Catalog, name: str, complete: Snapshot) -> Catalog:
    """Enter a snapshot as ready; what it referred to and does not need is given back.

    Args:
        catalog: the catalog.
        name: its id.
        complete: ``objects``, ``queries``, ``digest``, ``files`` and ``bytes`` of its manifest; the rest is not looked
            at.

    Raises:
        DisposedError: it was deleted meanwhile.
        SnapshotError: its manifest needs what it has not referred to.
    """
    known = catalog.snapshots.get(name)
    if known is not None and known.state is State.READY:
        return catalog
    snapshot = _being_taken(catalog, name)
    if not complete.objects <= snapshot.objects:
        raise SnapshotError(f"the manifest of {name} needs {min(complete.objects - snapshot.objects)}, not referred to")
    now_ready = dataclasses.replace(
        complete,
        state=State.READY,
        created=snapshot.created,
        lineage=snapshot.lineage,
        parent=snapshot.parent,
        manual=snapshot.manual,
        holders=snapshot.holders,
        sequence=_next_in_sequence(catalog),
    )
    return _release_objects(_with(catalog, name, now_ready), snapshot.objects - complete.objects)


def may_be_entered(catalog: Catalog, name: str) -> bool:
    """Return whether a snapshot that is published is not in the catalog as complete, and was not disposed of."""
    snapshot = catalog.snapshots.get(name)
    return is_id(name) and name not in catalog.gone and (snapshot is None or snapshot.state is State.TAKING)


def enter(catalog: Catalog, name: str, complete: Snapshot, sizes: Mapping[str, int]) -> Catalog:
    """Enter a snapshot as ready that is published, and of which the catalog does not know that.

    Nothing happens if it was disposed of, or needs what may be deleted at any moment or has another size by now.

    Args:
        catalog: the catalog.
        name: its id.
        complete: of its manifest, as for :func:`finish`; and when it was begun, its lineage and parent.
        sizes: name -> size of the shared objects that it needs.
    """
    if not may_be_entered(catalog, name) or not catalog.condemned.isdisjoint(sizes):
        return catalog
    if any(catalog.objects.get(known, size) != size for known, size in sizes.items()):
        return catalog
    begun = catalog.snapshots.get(name, Snapshot(State.TAKING, complete.created, manual=True))
    now_ready = dataclasses.replace(
        complete, manual=begun.manual, holders=begun.holders, sequence=_next_in_sequence(catalog)
    )
    added = dataclasses.replace(catalog, objects={**catalog.objects, **sizes})
    return _release_objects(_with(added, name, now_ready), begun.objects - complete.objects)


def _next_in_sequence(catalog: Catalog) -> int:
    return 1 + max((other.sequence for other in catalog.snapshots.values()), default=0)


def _being_taken(catalog: Catalog, name: str) -> Snapshot:
    snapshot = catalog.snapshots.get(name)
    if snapshot is None or snapshot.state is State.DELETING:
        raise DisposedError(f"snapshot {name} was deleted while it was being taken")
    if snapshot.state is State.READY:
        raise NotBeingTakenError(f"snapshot {name} is complete")
    return snapshot


# --- holding ---------------------------------------------------------------------------------------------------------


def hold(catalog: Catalog, name: str, holder: str) -> Catalog:
    """Keep a snapshot from being disposed of until ``holder`` releases it.

    Raises:
        UnknownSnapshotError: there is none, or it is on its way out.
        NotReadyError: it is not complete.
    """
    snapshot = catalog.snapshots.get(name)
    if snapshot is None or snapshot.state is State.DELETING:
        raise UnknownSnapshotError(f"there is no snapshot {name}" + (": it was deleted" if snapshot else ""))
    if snapshot.state is not State.READY:
        raise NotReadyError(f"snapshot {name} is not complete yet")
    return _with(catalog, name, dataclasses.replace(snapshot, holders=snapshot.holders | {holder}))


def release(catalog: Catalog, name: str, holder: str) -> Catalog:
    """Release a snapshot; it need not be there, nor be held."""
    snapshot = catalog.snapshots.get(name)
    if snapshot is None or holder not in snapshot.holders:
        return catalog
    return _with(catalog, name, dataclasses.replace(snapshot, holders=snapshot.holders - {holder}))


# --- disposing -------------------------------------------------------------------------------------------------------


def dispose(catalog: Catalog, name: str) -> Catalog:
    """Put a snapshot, complete or not, into ``deleting``, and condemn what only it referred to.

    One that is not there stays so: a process that was to take it and comes later finds that it was deleted. Where
    there never was a snapshot, nothing is written down.

    Raises:
        HeldError: somebody needs it.
    """
    snapshot = catalog.snapshots.get(name)
    if snapshot is None:
        is_known = name in catalog.gone or catalog.serial == 0
        return catalog if is_known else _with(catalog, name, Snapshot(State.DELETING, 0.0))
    if snapshot.state is State.DELETING:
        return catalog
    if snapshot.holders:
        raise HeldError(f"snapshot {name} is needed by {', '.join(sorted(snapshot.holders))}")
    going = dataclasses.replace(snapshot, state=State.DELETING, objects=frozenset(), digest="")
    return _release_objects(_with(catalog, name, going), snapshot.objects)


def forget(catalog: Catalog, names: Iterable[str], now: float) -> Catalog:
    """Remove snapshots in state ``deleting`` whose files are deleted; their ids are remembered for a while."""
    going = {name for name in names if _state(catalog, name) is State.DELETING}
    remembered = {name: at for name, at in catalog.gone.items() if at > now - MEMORY_SECONDS}
    if not going and len(remembered) == len(catalog.gone):
        return catalog
    return dataclasses.replace(
        catalog,
        snapshots={name: it for name, it in catalog.snapshots.items() if name not in going},
        gone={**remembered, **dict.fromkeys(sorted(going), now)},
    )


def forget_objects(catalog: Catalog, names: Iterable[str]) -> Catalog:
    """Remove condemned objects that are deleted."""
    left = catalog.condemned.difference(names)
    return catalog if left == catalog.condemned else dataclasses.replace(catalog, condemned=left)


def condemn_strays(catalog: Catalog, names: Iterable[str], objects: Iterable[str], now: float) -> Catalog:
    """Condemn what lies in the store and is not in the catalog: left by a process that wrote after its time.

    Args:
        catalog: as it was read *after* the store was listed.
        names: ids below ``snapshots/`` in that listing.
        objects: names below ``objects/`` in that listing. Who brought one in and is not in the catalog is entered, too.
        now: seconds since the epoch.
    """
    left = {name for name in objects if name not in catalog.objects}
    condemned = catalog.condemned | left
    begun = {name.rpartition(".")[2] for name in left - catalog.condemned} - catalog.gone.keys()
    unknown = sorted(name for name in {*names, *filter(is_id, begun)} if name not in catalog.snapshots)
    strays = Snapshot(State.DELETING, now)
    if not unknown and condemned == catalog.condemned:
        return catalog
    snapshots = {**catalog.snapshots, **dict.fromkeys(unknown, strays)}
    return dataclasses.replace(catalog, snapshots=snapshots, condemned=condemned)


def _release_objects(catalog: Catalog, names: Iterable[str]) -> Catalog:
    needed = frozenset[str]().union(*(snapshot.objects for snapshot in catalog.snapshots.values()))
    dropped = frozenset(names) - needed
    if not dropped:
        return catalog
    kept = {name: size for name, size in catalog.objects.items() if name not in dropped}
    return dataclasses.replace(catalog, objects=kept, condemned=catalog.condemned | dropped)


# --- the value -------------------------------------------------------------------------------------------------------


def file_of(name: str) -> str:
    """Return the file name of a shared object: its name without the id at its end."""
    return name.rpartition(".")[0]


def violations(catalog: Catalog) -> list[str]:
    """Return what must not be; nothing of the kind is ever written."""
    needed = frozenset[str]().union(*(snapshot.objects for snapshot in catalog.snapshots.values()))
    wrong = [f"object {name} is referred to and not known" for name in sorted(needed - catalog.objects.keys())]
    wrong += [f"object {name} is known and not referred to" for name in sorted(catalog.objects.keys() - needed)]
    wrong += [f"object {name} is needed and condemned" for name in sorted(catalog.condemned & catalog.objects.keys())]
    for name, snapshot in catalog.snapshots.items():
        if snapshot.state is State.DELETING and (snapshot.holders or snapshot.objects):
            wrong.append(f"snapshot {name} is being deleted and still held or holding")
        if (snapshot.state is State.READY) != bool(snapshot.digest):
            wrong.append(f"snapshot {name} is {snapshot.state.value}, and its manifest is {snapshot.digest or 'none'}")
    return wrong


def _state(catalog: Catalog, name: str) -> State | None:
    snapshot = catalog.snapshots.get(name)
    return snapshot.state if snapshot is not None else None


def _with(catalog: Catalog, name: str, snapshot: Snapshot) -> Catalog:
    return dataclasses.replace(catalog, snapshots={**catalog.snapshots, name: snapshot})
