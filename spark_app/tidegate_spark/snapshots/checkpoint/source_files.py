"""The files of a query's sources. Pure.

``sources/<number or name>`` is written once and taken as it is; Kafka's first offsets, for example, are
``sources/0/0``.

The file source keeps a log of the files it has read there (FileStreamSourceLog), numbered by its own offsets, not by
batches; every so often an entry ``<offset>.compact`` has all before it. It writes before the batch that reads it, so
entries after the wanted batch are left out: a query that resumes finds those files again.
"""

from __future__ import annotations

import json

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, Needed, UnreadableCheckpointError

SOURCES = "sources"
_COMPACT = ".compact"


def source_files(checkpoint: Checkpoint, offsets: dict[str, str]) -> list[Needed]:
    """Return the files that the sources need.

    Args:
        checkpoint: the whole checkpoint.
        offsets: of the batch, as the offset log has them, by the source's number or name.

    Raises:
        MissingFileError: an entry of a file source's log is not there.
        UnreadableCheckpointError: there are files that belong to no source.
    """
    for name in checkpoint.files(SOURCES):
        raise UnreadableCheckpointError(f"{SOURCES}/{name}", "belongs to no source")
    positions = _log_positions(checkpoint, offsets)
    needed: list[Needed] = []
    for source in checkpoint.directories(SOURCES):
        directory = f"{SOURCES}/{source}"
        if source in positions:
            needed += _log_files(checkpoint, directory, positions[source])
        else:
            needed += [checkpoint.need(path, "") for path in checkpoint.below(directory)]
    return needed


def _log_positions(checkpoint: Checkpoint, offsets: dict[str, str]) -> dict[str, int]:
    """Return the position of each file source in its log; none at all if it is not sure which log is whose.

    Directories are numbered by distinct sources, offsets by their occurrences in the query: they are the same numbers
    unless a query reads one source twice. Whole logs are then taken, which are ahead perhaps, but complete.
    """
    of_offsets = {source: at for source, text in offsets.items() if (at := _position(text)) is not None}
    logs = [source for source in checkpoint.directories(SOURCES) if _is_log(checkpoint, f"{SOURCES}/{source}")]
    found = {source: of_offsets[source] for source in logs if source in of_offsets}
    return found if len(found) == len(of_offsets) else {}


def _position(text: str) -> int | None:
    """Return the position in its log that an offset of a file source is (FileStreamSourceOffset), None of another's."""
    try:
        offset = json.loads(text)
    except ValueError:
        return None
    position = offset.get("logOffset") if isinstance(offset, dict) and len(offset) == 1 else None
    return position if isinstance(position, int) and position >= 0 else None


def _is_log(checkpoint: Checkpoint, directory: str) -> bool:
    names = checkpoint.files(directory)
    return bool(names) and all(is_number(_stem(name)) for name in names) and not checkpoint.directories(directory)


def _stem(name: str) -> str:
    return name[: -len(_COMPACT)] if name.endswith(_COMPACT) else name


def _log_files(checkpoint: Checkpoint, directory: str, position: int) -> list[Needed]:
    """Return the log up to ``position``: from the last compact entry on, as CompactibleFileStreamLog reads it.

    The compact entry before is taken too if it is there: two of them show Spark how many entries there are from one to
    the next. Of one it would derive that from the configuration, which may have changed since.
    """
    names = [name for name in checkpoint.files(directory) if name.endswith(_COMPACT)]
    compact = sorted(int(_stem(name)) for name in names if int(_stem(name)) <= position)
    kept = [f"{each}{_COMPACT}" for each in compact[-2:]]
    start = compact[-1] + 1 if compact else 0
    reason = f"the source's offset is entry {position} of this log"
    entries = [str(each) for each in range(start, position + 1)]
    return [checkpoint.need(f"{directory}/{name}", reason) for name in kept + entries]
