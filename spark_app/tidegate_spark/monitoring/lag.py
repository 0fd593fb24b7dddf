"""How far a query is behind its sources, from Spark's report of a batch. Pure.

Spark reports per source where the batch ended (``endOffset``) and what there was when it was planned
(``latestOffset``). The difference is a number of rows for Kafka only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

UNKNOWN = -1


def lag_of(sources: list[dict[str, Any]]) -> int:
    """Return the rows that a batch left behind, over all sources that report them; UNKNOWN if none does.

    Args:
        sources: ``sources`` of a ``StreamingQueryProgress``, as Spark's own JSON.
    """
    known = [lag for lag in map(_lag_of_source, sources) if lag is not None]
    return sum(known) if known else UNKNOWN


def partitions_of(sources: Sequence[Mapping[str, Any]]) -> int:
    """Return how many partitions the sources have together, UNKNOWN if one of them does not report them.

    Args:
        sources: as above, without that of control messages, which has no rows of its own.
    """
    known = [_partitions(source.get("endOffset")) for source in sources]
    return UNKNOWN if not known or any(each is None for each in known) else sum(len(each or ()) for each in known)


def _lag_of_source(source: dict[str, Any]) -> int | None:
    end, latest = _partitions(source.get("endOffset")), _partitions(source.get("latestOffset"))
    if end is None:
        return None
    if latest is not None:
        # A partition without an end is new: the next batch decides where it begins.
        return sum(max(0, offset - end[partition]) for partition, offset in latest.items() if partition in end)
    behind = (source.get("metrics") or {}).get("avgOffsetsBehindLatest")
    return None if behind is None else max(0, round(float(behind) * len(end)))


def _partitions(offset: Any) -> dict[tuple[str, str], int] | None:
    """Return Kafka's offsets, ``{topic: {partition: offset}}``, by partition; None for what has another form."""
    if not isinstance(offset, dict) or not all(isinstance(each, dict) for each in offset.values()):
        return None
    flat = {(topic, partition): end for topic, each in offset.items() for partition, end in each.items()}
    return flat if all(isinstance(end, int) for end in flat.values()) else None
