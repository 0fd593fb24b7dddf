"""Restores a snapshot into a new lineage, also of another application or bucket. I/O by the port.

Files that name their place are rewritten; so is a fork's query id, and the offsets that a spec names. It can be
interrupted and repeated. Offsets and commits come first: a query on half a checkpoint then fails for want of state,
instead of silently starting with nothing.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_spark.contract.named_offsets import TopicOffsets, topics_of, with_offsets
from tidegate_spark.snapshots import catalog, manifest, reentry
from tidegate_spark.snapshots.checkpoint.checkpoint import CHECKSUM_SUFFIX
from tidegate_spark.snapshots.checkpoint.operator_files import names_its_place, relocated
from tidegate_spark.snapshots.checkpoint.query_logs import OFFSETS, map_offsets
from tidegate_spark.snapshots.copying import USUAL, Copiers, Copy, check_copies, copy_all, list_keys
from tidegate_spark.snapshots.manifest import File, Manifest
from tidegate_spark.snapshots.repository import OBJECT_PREFIX, SnapshotRepository
from tidegate_spark.storage import location_notes
from tidegate_spark.storage.store import Entry, Found, MismatchError, Place, SnapshotError, VanishedError, agree

METADATA = "metadata"
"""The file of a checkpoint that holds the query's id."""
_MD5 = re.compile(r'"?[0-9a-f]{32}"?')
_NAMESPACE = uuid.UUID("5f0d7f3c-3f0b-4c39-9c5e-0d6a3c1a7f11")


class LineageInUseError(SnapshotError):
    """The lineage holds something that is not of this snapshot."""


class UnreadTopicError(SnapshotError):
    """No query of the snapshot reads a topic for which there are offsets."""


@dataclass(frozen=True)
class Origin:
    """A snapshot, anywhere."""

    repository: SnapshotRepository
    id: str


@dataclass(frozen=True)
class Target:
    """A lineage that is to start from a snapshot."""

    repository: SnapshotRepository
    lineage: int
    fork: bool = False
    """Whether the queries are to be others than the origin's: two of one id in one session stop each other."""
    offsets: TopicOffsets = field(default_factory=dict)
    """Of topics that are to be read from elsewhere than where the snapshot's batches end."""


def restore(origin: Origin, target: Target, holder: str, copiers: Copiers = USUAL) -> Manifest:
    """Copy a snapshot into a lineage, which holds exactly that afterwards.

    The snapshot stays held by ``holder``: who asked for the restore releases it when the lineage has everything and
    nobody is at it any more. From then on the lineage needs nothing of the snapshot.

    Args:
        origin: the snapshot.
        target: the lineage; empty, or left by an earlier attempt at this.
        holder: who needs the snapshot; the same for each attempt, and of nobody else.
        copiers: how files are copied, and what is called after each.

    Returns:
        The snapshot's manifest.

    Raises:
        UnknownSnapshotError: there is no such snapshot.
        NotReadyError: it is not complete.
        UnreadableManifestError: it is not what was published.
        LineageInUseError: the lineage holds something else. Nothing was written.
        UnreadTopicError: offsets are given for what no query reads. Nothing was written.
        VanishedError, MismatchError: the snapshot is damaged.
        UnreadableCheckpointError: a file that says where it is cannot be read.
        TooLargeToCarryError: it would have to go from one store to another, and has too large an object.
    """
    held = reentry.hold(origin.repository, origin.id, holder)
    made = manifest.read(origin.repository, origin.id, held)
    _fill(origin, target, made, copiers)
    location_notes.note_queries(target.repository, target.lineage, made.locations, made.named_locations())
    return made


def release(origin: Origin, holder: str) -> None:
    """Say that ``holder`` does not need the snapshot any more; it need not be there."""
    origin.repository.change(lambda it: catalog.release(it, origin.id, holder))


def _fill(origin: Origin, target: Target, made: Manifest, copiers: Copiers) -> None:
    now = _as_they_are(origin, made)
    _refuse_unread(target, made)
    copies, written = _copies(origin, target, made, now), _written(origin, target, made, now)
    root = target.repository.lineage_key(target.lineage) + "/"
    there = list_keys(target.repository.store, root)
    other = sorted(there.keys() - copies.keys() - written.keys())
    if other:
        raise LineageInUseError(f"lineage {target.lineage} is in use: it holds {other[0]}, which is not of {made.id}")
    missing = [copy for key, copy in copies.items() if key not in there or not _is_copy(there[key], copy)]
    copied: dict[str, Found] = {}
    copy_all(target.repository.store, missing, copiers, copied, origin.repository.store)
    for key, body in written.items():
        target.repository.store.put(key, body)
    expected = {key: copied.get(key, Found(copy.size, copy.etag)) for key, copy in copies.items()}
    expected.update((key, Found(len(body), "")) for key, body in written.items())
    check_copies(list_keys(target.repository.store, root), expected)


def _refuse_unread(target: Target, made: Manifest) -> None:
    """Raise if offsets are given for a topic of which the last batch of no query has any."""
    read = set[str]()

    def note(logged: str) -> str:
        read.update(topics_of(logged))
        return logged

    for query in made.queries.values() if target.offsets else ():
        map_offsets(f"{OFFSETS}/{query.batch}", query.offsets, note)
    unread = sorted(target.offsets.keys() - read)
    if unread:
        topics, known = ", ".join(map(repr, unread)), ", ".join(map(repr, sorted(read))) or "none"
        raise UnreadTopicError(f"no query of {made.id} has read {topics} (topics that were read: {known})")


def _is_own(target: Target, made: Manifest, query: str, path: str) -> bool:
    """Return whether a file is another one in this lineage than in the snapshot."""
    return names_its_place(path) or (target.fork and path == METADATA) or _is_where_to_go_on(target, made, query, path)


def _is_where_to_go_on(target: Target, made: Manifest, query: str, path: str) -> bool:
    return bool(target.offsets) and path == f"{OFFSETS}/{made.queries[query].batch}"  # the entry that Spark reads


def _copies(origin: Origin, target: Target, made: Manifest, now: Mapping[str, Entry]) -> dict[str, Copy]:
    """Return target key -> copy, in the order in which they are to be made."""
    copies = {}
    for file in sorted(made.files, key=lambda file: (not file.path.startswith(("offsets/", "commits/")), file.path)):
        # A checksum is of the original; Spark does without.
        original = file.path.removesuffix(CHECKSUM_SUFFIX)
        if any(_is_own(target, made, file.query, path) for path in (file.path, original)):
            continue
        key = target.repository.lineage_key(target.lineage, file.query, file.path)
        source = now[file.key]
        copies[key] = Copy(Place(origin.repository.store.bucket, source.key), source.size, source.etag, key)
    return copies


def _written(origin: Origin, target: Target, made: Manifest, now: Mapping[str, Entry]) -> dict[str, bytes]:
    """Return target key -> content, of the files that are not just copied."""
    written = {}
    for file in made.files:
        if not _is_own(target, made, file.query, file.path):
            continue
        lineage = target.repository.lineage_key(target.lineage, file.query)
        if file.path == METADATA:
            written[f"{lineage}/{file.path}"] = _metadata(target, made, file.query)
        elif _is_where_to_go_on(target, made, file.query, file.path):
            ended = made.queries[file.query].offsets
            moved = map_offsets(file.path, ended, lambda logged: with_offsets(logged, target.offsets))
            written[f"{lineage}/{file.path}"] = moved.encode()
        else:
            root = f"s3a://{target.repository.store.bucket}/{lineage}"
            written[f"{lineage}/{file.path}"] = relocated(file.path, _content(origin, now[file.key]), root)
    return written


def _content(origin: Origin, entry: Entry) -> bytes:
    found = origin.repository.store.get(entry.key)
    if found is None or found[1] != entry.etag:
        raise VanishedError(f"{entry.key}, a file of snapshot {origin.id}, is gone or has changed")
    return found[0]


def _is_copy(entry: Entry, copy: Copy) -> bool:
    return (entry.size, entry.etag) == (copy.size, copy.etag)


def _metadata(target: Target, made: Manifest, query: str) -> bytes:
    # The same at each attempt, and another one for each lineage anywhere.
    store = target.repository.store
    place = f"{store.service} {store.bucket} {target.repository.prefix} {target.lineage}"
    return json.dumps({"id": str(uuid.uuid5(_NAMESPACE, f"{place} {query} {made.id}"))}).encode()


# --- whether it is whole ---------------------------------------------------------------------------------------------


def damages(origin: Origin) -> list[str]:
    """Return what is wrong with a complete snapshot by the store's own account, nothing if it is whole.

    Raises:
        UnknownSnapshotError: there is no such snapshot.
        NotReadyError: it is not complete.
    """
    try:
        made = manifest.read(origin.repository, origin.id, origin.repository.read())
    except manifest.UnreadableManifestError as error:
        return [str(error)]
    found = []
    listed = _listed(origin)
    for file in made.files:
        try:
            _as_it_is(origin, file, listed)
        except (VanishedError, MismatchError) as error:
            found.append(str(error))
    return found


def _as_they_are(origin: Origin, made: Manifest) -> dict[str, Entry]:
    listed = _listed(origin)
    return {file.key: _as_it_is(origin, file, listed) for file in made.files}


def _listed(origin: Origin) -> dict[str, Entry]:
    repository = origin.repository
    own = list_keys(repository.store, repository.key(manifest.own_key(origin.id)) + "/")
    return {**own, **list_keys(repository.store, repository.key(OBJECT_PREFIX) + "/")}


def _as_it_is(origin: Origin, file: File, listed: Mapping[str, Entry]) -> Entry:
    """Return a file's object; its ETag may be another one than the manifest's if the same content was put again."""
    key = origin.repository.key(file.key)
    entry = listed.get(key)
    if entry is None:
        raise VanishedError(f"{key}, a file of snapshot {origin.id}, is gone")
    if (entry.size, entry.etag) == (file.size, file.etag):
        return entry
    found = origin.repository.store.head(key)
    if found is None:
        raise VanishedError(f"{key}, a file of snapshot {origin.id}, is gone")
    # The object as it is now shows whether ETags are checksums there.
    plain = found.plain and _MD5.fullmatch(file.etag) is not None
    if not agree(Found(file.size, file.etag, file.checksum, plain), found):
        raise MismatchError(f"{key}, a file of snapshot {origin.id}, is not what was published")
    return Entry(key, found.size, found.etag)
