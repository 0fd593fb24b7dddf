"""The logs of a query in its checkpoint: id, offsets and commits of batches. Pure.

``metadata`` (StreamMetadata of Spark) has the query's id; ``offsets/<batch>`` (OffsetSeqLog) is written before a batch
runs, ``commits/<batch>`` (CommitLog) after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.snapshots.checkpoint.checkpoint import (
    Checkpoint,
    Needed,
    UnreadableCheckpointError,
    parsed,
    versioned,
)

METADATA, OFFSETS, COMMITS = "metadata", "offsets", "commits"
_NEWEST_OFFSETS, _NEWEST_COMMIT = 2, 3

Ids = dict[int, list[list[str]]]
"""By operator, then partition: the unique ids of the state stores."""


@dataclass(frozen=True)
class Offsets:
    """An entry of the offset log."""

    path: str
    text: str
    """The whole of it."""
    by_source: dict[str, str]
    """Offsets as the log has them, by the source's number or name."""
    conf: dict[str, str]
    """The settings that Spark keeps for the life of the checkpoint."""


@dataclass(frozen=True)
class Commit:
    """An entry of the commit log."""

    version: int
    ids: Ids | None
    """Of the state after the batch, in checkpoint format 2, where a stateless query has none; None in format 1."""
    sinks: tuple[str, ...]
    """The providers of the active sinks, which the log has from its version 3 on."""


def newest_entry(paths: Iterable[str], log: str) -> int:
    """Return the newest batch in a log of a checkpoint, -1 if it has none; ``paths``: the checkpoint's files."""
    names = (path[len(log) + 1 :] for path in paths if path.startswith(f"{log}/"))
    return max((int(name) for name in names if is_number(name)), default=-1)


def read_query_id(checkpoint: Checkpoint) -> str:
    """Return Spark's id of the query; raises as :func:`read_offsets`."""
    query_id = parsed(METADATA, checkpoint.read_text(METADATA, "it has the query's id")).get("id")
    if not isinstance(query_id, str):
        raise UnreadableCheckpointError(METADATA, "has no `id`")
    return query_id


def read_offsets(checkpoint: Checkpoint, batch: int) -> Offsets:
    """Return where ``batch`` ends: an OffsetSeq or, in the log's version 2, an OffsetMap.

    Raises:
        MissingFileError: it is not there.
        UnreadableCheckpointError: it is not understood.
    """
    path = f"{OFFSETS}/{batch}"
    text = checkpoint.read_text(path, f"it is where batch {batch} ends")
    version, rest = versioned(path, text, _NEWEST_OFFSETS)
    lines = rest.split("\n")[1:]
    conf = settings_of(path, text)
    if version == 1:
        return Offsets(path, text, {str(number): line for number, line in enumerate(lines)}, conf)
    pairs = [line.partition(":") for line in lines]
    for source, colon, _ in pairs:
        if not colon:
            raise UnreadableCheckpointError(path, f"has the line {source[:40]!r}, which names no source")
    return Offsets(path, text, {source: offset for source, _, offset in pairs}, conf)


def settings_of(path: str, text: str) -> dict[str, str]:
    """Return the settings that Spark keeps for the life of a checkpoint.

    Args:
        path: of an entry of the offset log, for words.
        text: the whole of it.

    Raises:
        UnreadableCheckpointError: it is not understood.
    """
    first = versioned(path, text, _NEWEST_OFFSETS)[1].partition("\n")[0]
    conf = parsed(path, first).get("conf", {}) if first.strip() else {}
    if not isinstance(conf, dict):
        raise UnreadableCheckpointError(path, "has a `conf` that is no object")
    return conf


def map_offsets(path: str, text: str, change: Callable[[str], str]) -> str:
    """Return an entry of the offset log with the offsets of each source changed.

    Args:
        path: of the entry, for words.
        text: the whole of it.
        change: gets what the log has of one source, and returns what it is to have.

    Raises:
        UnreadableCheckpointError: it is not understood.
    """
    version, rest = versioned(path, text, _NEWEST_OFFSETS)
    conf, *lines = rest.split("\n")
    if version > 1:
        pairs = (line.partition(":") for line in lines)
        lines = [f"{source}{colon}{change(offset)}" for source, colon, offset in pairs]
    else:
        lines = [change(line) for line in lines]
    return "\n".join([text.partition("\n")[0], conf, *lines])


def read_commit(checkpoint: Checkpoint, batch: int) -> Commit:
    """Return what was committed with ``batch``: CommitMetadata, CommitMetadataV2 or CommitMetadataV3.

    Raises:
        MissingFileError: it is not there.
        UnreadableCheckpointError: it is not understood.
    """
    path = f"{COMMITS}/{batch}"
    text = checkpoint.read_text(path, f"batch {batch} is not committed without it")
    version, rest = versioned(path, text, _NEWEST_COMMIT)
    metadata = parsed(path, rest.partition("\n")[0] or "{}")
    ids = metadata.get("stateUniqueIds")
    sinks = metadata.get("sinkMetadataMap") or {}
    try:
        found = None if ids is None else {int(operator): _checked(of) for operator, of in ids.items()}
        names = tuple(str(sink["providerName"]) for sink in sinks.values() if sink.get("isActive", True))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableCheckpointError(path, f"has another form than is known ({error!r})") from error
    return Commit(version, found, names)


def entry_before(checkpoint: Checkpoint, batch: int, stateless: bool) -> list[Needed]:
    """Return the entry of the offset log before ``batch``, from which Spark starts the sources.

    MicroBatchExecution.populateStartOffsets reads both, even if the batch is committed. With asynchronous progress
    tracking, which only stateless queries have, batches are left out of the log.

    Raises:
        MissingFileError: there is none, and the batch is not the first.
    """
    if batch == 0:
        return []
    before = batch - 1
    if stateless and f"{OFFSETS}/{before}" not in checkpoint:
        before = max((number for number in checkpoint.numbers(OFFSETS) if number < batch), default=before)
    return [checkpoint.need(f"{OFFSETS}/{before}", f"it is where batch {batch} begins")]


def _checked(partitions: Any) -> list[list[str]]:
    if not isinstance(partitions, list) or not partitions or not all(isinstance(each, list) for each in partitions):
        raise TypeError(f"{partitions!r} is no list of lists")
    for stores in partitions:
        if not stores or not all(isinstance(each, str) and each and "/" not in each for each in stores):
            raise TypeError(f"{stores!r} is no list of ids")
    return partitions
