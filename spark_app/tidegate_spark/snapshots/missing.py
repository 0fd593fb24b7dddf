"""Finds complete snapshots that lack files, by two listings. I/O by the port.

A catalog that was put back names some. Changed content is found by a verification or a restore.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidegate_spark.contract.object_paths import SNAPSHOT_PREFIX
from tidegate_spark.snapshots import manifest, messages
from tidegate_spark.snapshots.catalog import Catalog, Snapshot
from tidegate_spark.snapshots.copying import list_keys
from tidegate_spark.snapshots.repository import OBJECT_PREFIX, SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, damages
from tidegate_spark.storage.store import Entry


def find(repository: SnapshotRepository) -> dict[str, str]:
    """Return what each complete snapshot lacks that lacks something; an upgrade's own among them.

    Raises:
        Exception: what the store's client raises.
    """
    before = repository.read()
    ready = before.ready()
    if not ready:
        return {}
    own = list_keys(repository.store, repository.key(SNAPSHOT_PREFIX) + "/")
    files, sizes = Counter[str](), Counter[str]()
    for key, entry in own.items():
        name = repository.below(key).split("/")[1]
        files[name] += 1
        sizes[name] += 0 if key == repository.manifest_key(name) else entry.size
    objects = list_keys(repository.store, repository.key(OBJECT_PREFIX) + "/")
    lacking = [
        name
        for name in ready
        if repository.manifest_key(name) not in own
        or files[name] != before.snapshots[name].files
        or _is_of_another_size(before.snapshots[name], sizes[name], before)
        or _lacks_objects(repository, before.snapshots[name], before, objects)
    ]
    # Whoever disposed of one meanwhile deletes its files.
    left = repository.read().ready() if lacking else []
    found = {name: damages(Origin(repository, name)) for name in lacking if name in left}
    return {name: messages.not_whole(name, wrong) for name, wrong in found.items() if wrong}


def _is_of_another_size(snapshot: Snapshot, own: int, known: Catalog) -> bool:
    """Return whether the sizes do not add up; pure. One file too few and one too many are as many as there were."""
    return snapshot.bytes not in (0, own + sum(known.objects[name] for name in snapshot.objects))


def _lacks_objects(
    repository: SnapshotRepository, snapshot: Snapshot, known: Catalog, objects: Mapping[str, Entry]
) -> bool:
    """Return whether a shared object of a snapshot is not in a listing, or has another size; pure."""
    listed = ((known.objects[it], objects.get(repository.key(manifest.object_key(it)))) for it in snapshot.objects)
    return any(entry is None or entry.size != size for size, entry in listed)
