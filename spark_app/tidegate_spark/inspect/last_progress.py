"""What Spark reported last of each query, its operators and its sources. Pure; standard library only.

Spark reports a batch when it is committed, as the JSON of a ``StreamingQueryProgress``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tidegate_spark.monitoring.lag import UNKNOWN, lag_of

_SIZES = ("rocksdbSstFileSize",)


class LastProgress:
    """The last event of each query; thread safe."""

    def __init__(self) -> None:
        """Know of no query."""
        self._lock = threading.Lock()
        self._last: dict[str, Mapping[str, Any]] = {}

    def note(self, query: str, event: Mapping[str, Any]) -> None:
        """Remember an event, which must not be changed afterwards."""
        with self._lock:
            self._last[query] = event

    def of(self, query: str) -> Mapping[str, Any] | None:
        """Return the last event of a query, None if there was none yet."""
        with self._lock:
            return self._last.get(query)


def batch_of(event: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return of which batch an event is, and when that began."""
    if event is None:
        return {"batch": None, "batchBegan": None}
    return {"batch": int(event["batchId"]), "batchBegan": event.get("timestamp")}


def operators_of(event: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the operators with state, by their number: Spark reports them in that order.

    ``rows`` are Spark's own count: of keys in most operators, of the rows of all state variables in a
    transformWithState, and of what both sides of a join keep.
    """
    reported = (event or {}).get("stateOperators") or []
    return [_operator(number, each) for number, each in enumerate(reported)]


def sources_of(event: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return where each source is after the batch, and how many rows wait there if it reports that."""
    return [_source(number, each) for number, each in enumerate((event or {}).get("sources") or [])]


def watermark_of(event: Mapping[str, Any] | None) -> str | None:
    """Return the watermark that the batch went by, None if the query has none (Spark then has that of 1970)."""
    found = ((event or {}).get("eventTime") or {}).get("watermark")
    return None if found is None or str(found).startswith("1970-01-01T00:00:00") else str(found)


def _operator(number: int, reported: Mapping[str, Any]) -> dict[str, Any]:
    custom = reported.get("customMetrics") or {}
    on_disk = next((custom[name] for name in _SIZES if name in custom), None)
    return {
        "operator": number,
        "operatorName": reported.get("operatorName"),
        "rows": reported.get("numRowsTotal"),
        "rowsUpdated": reported.get("numRowsUpdated"),
        "rowsRemoved": reported.get("numRowsRemoved"),
        "rowsDroppedByWatermark": reported.get("numRowsDroppedByWatermark"),
        "bytes": on_disk if on_disk is not None else reported.get("memoryUsedBytes"),
        "memoryBytes": reported.get("memoryUsedBytes"),
        "partitions": reported.get("numShufflePartitions"),
    }


def _source(number: int, reported: Mapping[str, Any]) -> dict[str, Any]:
    lag = lag_of([dict(reported)])
    return {
        "source": number,
        "description": reported.get("description"),
        "start": reported.get("startOffset"),
        "end": reported.get("endOffset"),
        "latest": reported.get("latestOffset"),
        "lagRows": None if lag == UNKNOWN else lag,
        "rows": reported.get("numInputRows"),
        "rowsPerSecond": {
            "input": reported.get("inputRowsPerSecond"),
            "processed": reported.get("processedRowsPerSecond"),
        },
        "metrics": reported.get("metrics") or {},
    }
