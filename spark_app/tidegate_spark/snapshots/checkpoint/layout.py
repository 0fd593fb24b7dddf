"""Which files of a Spark checkpoint make up one batch. Pure: a listing and a way to read files in, a set of files out.

A query that starts on these files resumes after the batch with its state. Each kind of file has a reader in this
package. A file that is not understood, or is needed and missing, is refused by name; unused partitions and files of
attempts that did not count are left out.

A file sink's log, ``_spark_metadata``, is beside the output and not in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.object_paths import LEFT_AFTER, is_number
from tidegate_spark.snapshots.checkpoint import hdfs_files, rocksdb_files
from tidegate_spark.snapshots.checkpoint.checkpoint import (
    CHECKSUM_SUFFIX,
    Checkpoint,
    Heads,
    MissingFileError,
    Needed,
    UnreadableCheckpointError,
)
from tidegate_spark.snapshots.checkpoint.operator_files import (
    DEFAULT_STORE,
    STATE,
    Described,
    Operator,
    describe,
    operators,
    partitions_with_files,
    single_partition,
    store_directory,
)
from tidegate_spark.snapshots.checkpoint.query_logs import (
    COMMITS,
    METADATA,
    OFFSETS,
    Ids,
    Offsets,
    entry_before,
    newest_entry,
    read_commit,
    read_offsets,
    read_query_id,
)
from tidegate_spark.snapshots.checkpoint.source_files import SOURCES, source_files
from tidegate_spark.storage.store import Entry

HDFS, ROCKSDB = "HDFS", "RocksDB"
_PROVIDERS = {
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider": HDFS,
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider": ROCKSDB,
}
_PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_KNOWN = frozenset((METADATA, OFFSETS, COMMITS, SOURCES, STATE, LEFT_AFTER))
"""Files and directories of a checkpoint: Spark's, and our note that the query starts empty since."""

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class State:
    """What a checkpoint says of its state; this, of a stateless query."""

    provider: str = ""
    """HDFS or RocksDB."""
    changelog: bool = False
    """Whether RocksDB's state stores have changelogs."""
    partitions: int = 0
    """As the query was planned."""
    operators: tuple[Operator, ...] = ()


@dataclass(frozen=True)
class CheckpointAt:
    """One batch of a query's checkpoint."""

    batch: int
    files: tuple[Needed, ...]
    """All that is needed, in the order of their paths."""
    offsets: str
    """``offsets/<batch>``, verbatim."""
    query_id: str
    """Spark's id of the query. Two queries with one id do not run in one session."""
    format_version: int
    """Of the checkpoint: in 2, state files have unique ids."""
    state: State
    sinks: tuple[str, ...]
    """The providers of the sinks, if the commit log has them."""

    @property
    def stateless(self) -> bool:
        """Whether there is no state."""
        return not self.state.operators

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is worth knowing, as JSON."""
        return {
            "queryId": self.query_id,
            "formatVersion": self.format_version,
            "stateless": self.stateless,
            "provider": self.state.provider,
            "changelog": self.state.changelog,
            "partitions": self.state.partitions,
            "operators": [
                {
                    "id": each.number,
                    "name": each.name,
                    "stores": list(each.stores),
                    "partitions": each.partitions,
                    **({"onePlace": True} if each.one_place else {}),
                }
                for each in self.state.operators
            ],
            "sinks": list(self.sinks),
        }


@dataclass(frozen=True)
class _Store:
    """One state store at the batch."""

    directory: str
    unique_id: str | None
    inside: tuple[str, ...]
    """Stores that are in directories of this one's."""


def newest_committed(listing: Mapping[str, Entry]) -> int | None:
    """Return the newest batch that is committed, None if there is none."""
    newest = newest_entry(listing, COMMITS)
    return newest if newest >= 0 else None


def needed_files(
    listing: Mapping[str, Entry],
    read: Callable[[str], bytes],
    batch: int,
    each: Each = map,
    read_head: Heads = None,
) -> CheckpointAt:
    """Return what a query needs to resume after ``batch``.

    Args:
        listing: of the query's checkpoint, by path relative to its root.
        read: returns the content of such a path. It is called for logs, schemas and metadata, and for at most two files
            of each state store: RocksDB's newest snapshot (not its SST files) and, in format 2, newest changelog.
        batch: a committed one.
        each: ``map``, or what does the same in parallel; for reading the state stores.
        read_head: returns so many bytes at the beginning of a path: changelogs may be large, and many are read at a
            time. None: they are read whole.

    Raises:
        MissingFileError: a file is not there. Spark may have cleaned it: a newer batch may do.
        UnreadableCheckpointError: something is not understood.
        Exception: what ``read`` raises.
    """
    checkpoint = Checkpoint(listing, read, read_head)
    for name in [*checkpoint.files(""), *checkpoint.directories("")]:
        if name not in _KNOWN:
            raise UnreadableCheckpointError(name, "is nothing that Spark is known to keep in a checkpoint")
    query_id = read_query_id(checkpoint)
    commit = read_commit(checkpoint, batch)
    offsets = read_offsets(checkpoint, batch)
    described = [describe(checkpoint, number, batch) for number in _operators(checkpoint, commit.ids)]
    needed = [checkpoint.need(path, "") for path in (METADATA, f"{OFFSETS}/{batch}", f"{COMMITS}/{batch}")]
    needed += entry_before(checkpoint, batch, stateless=not described)
    needed += source_files(checkpoint, offsets.by_source)
    state = State()
    if described:
        state, stores = _state(checkpoint, offsets, described, commit.ids)
        needed += [file for operator in described for file in operator.needed]
        needed += _store_files(checkpoint, state.provider, stores, batch + 1, each)
    return CheckpointAt(
        batch=batch,
        files=_with_checksums(checkpoint, needed),
        offsets=offsets.text,
        query_id=query_id,
        format_version=1 if commit.ids is None else 2,
        state=state,
        sinks=commit.sinks,
    )


def _operators(checkpoint: Checkpoint, ids: Ids | None) -> list[int]:
    """Return the operators that had state in the batch.

    Raises:
        MissingFileError: one of them has no directory.
        UnreadableCheckpointError: there is state of one that the commit log does not know.
    """
    with_directory = operators(checkpoint)
    if ids is None:
        # Spark numbers them from 0 on.
        wanted = list(range(with_directory[-1] + 1)) if with_directory else []
    else:
        wanted = sorted(ids)
        for number in sorted(set(with_directory) - set(wanted)):
            # A start that Spark refused leaves metadata of operators that never ran.
            if partitions_with_files(checkpoint, number):
                raise UnreadableCheckpointError(f"{STATE}/{number}", "is state that the commit log does not name")
    for number in wanted:
        if number not in with_directory:
            raise MissingFileError(f"{STATE}/{number}", "it is the state of an operator")
    return wanted


def _state(
    checkpoint: Checkpoint, offsets: Offsets, described: list[Described], ids: Ids | None
) -> tuple[State, list[_Store]]:
    """Return what the state is and the stores it consists of; raises as ``needed_files``."""
    name = offsets.conf.get(_PROVIDER_KEY)
    provider = _PROVIDERS.get(str(name))
    if provider is None:
        raise UnreadableCheckpointError(offsets.path, f"names {name!r} as the provider of state stores")
    planned = offsets.conf.get(_PARTITIONS_KEY)
    if not isinstance(planned, str) or not is_number(planned):
        raise UnreadableCheckpointError(offsets.path, f"has {planned!r} as the number of the state's partitions")
    found: list[Operator] = []
    stores: list[_Store] = []
    for operator in described:
        own = None if ids is None else ids[operator.number]
        count = _partitions(checkpoint, operator, int(planned), own)
        found.append(
            Operator(
                operator.number,
                operator.name,
                operator.stores,
                count,
                _one_place(checkpoint, operator, count, int(planned)),
            )
        )
        for partition in range(count):
            stores += _stores(operator, partition, None if own is None else own[partition])
    changelog = provider == ROCKSDB and any(rocksdb_files.has_changelogs(checkpoint, s.directory) for s in stores)
    return State(provider, changelog, int(planned), tuple(found)), stores


def _one_place(checkpoint: Checkpoint, operator: Described, count: int, planned: int) -> bool:
    """Return whether an operator gets all rows at one place; with one partition in all, only its schema shows it."""
    if planned > 1:
        return count < planned
    try:
        return single_partition(checkpoint, operator)
    except UnreadableCheckpointError:
        # A form of schema that is not known here: a snapshot does without it, and who repartitions state checks again.
        return False


def _partitions(checkpoint: Checkpoint, operator: Described, planned: int, ids: list[list[str]] | None) -> int:
    """Return how many partitions of the operator have state.

    The commit log says so in checkpoint format 2. In format 1 nothing does but the plan's number, which the offset log
    has, and the rule that every partition commits in every batch. Directories of higher numbers are from before a
    repartitioning.
    """
    directory = f"{STATE}/{operator.number}"
    with_files = set(partitions_with_files(checkpoint, operator.number))
    if ids is not None:
        if len(ids) not in (1, planned):
            raise UnreadableCheckpointError(directory, f"has {len(ids)} partitions in the commit log, not {planned}")
        return len(ids)
    missing = sorted(set(range(planned)) - with_files)
    if missing and not (0 in with_files and single_partition(checkpoint, operator)):
        raise MissingFileError(f"{directory}/{missing[0]}", "it is a partition of the state")
    return 1 if missing else planned


def _stores(operator: Described, partition: int, ids: list[str] | None) -> list[_Store]:
    """Return the state stores of a partition; their ids in the commit log are in the order of the metadata."""
    if ids is not None and len(ids) != len(operator.stores):
        directory = store_directory(operator.number, partition, DEFAULT_STORE)
        raise UnreadableCheckpointError(directory, f"has {len(ids)} ids for its stores, {', '.join(operator.stores)}")
    others = tuple(store for store in operator.stores if store != DEFAULT_STORE)
    return [
        _Store(
            store_directory(operator.number, partition, store),
            None if ids is None else ids[number],
            others if store == DEFAULT_STORE else (),
        )
        for number, store in enumerate(operator.stores)
    ]


def _store_files(checkpoint: Checkpoint, provider: str, stores: list[_Store], version: int, each: Each) -> list[Needed]:
    def files_of(store: _Store) -> list[Needed]:
        if provider == HDFS:
            return hdfs_files.store_files(checkpoint, store.directory, version, store.inside)
        return rocksdb_files.store_files(checkpoint, store.directory, version, store.unique_id, store.inside)

    return [file for files in each(files_of, stores) for file in files]


def _with_checksums(checkpoint: Checkpoint, needed: list[Needed]) -> tuple[Needed, ...]:
    """Add Spark's files with checksums, where there are any: it resumes without them, but then does not verify."""
    files = {file.path: file for file in needed}
    for path in list(files):
        if path + CHECKSUM_SUFFIX in checkpoint:
            files.setdefault(path + CHECKSUM_SUFFIX, Needed(path + CHECKSUM_SUFFIX))
    return tuple(files[path] for path in sorted(files))
