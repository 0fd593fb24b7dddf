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
    """Return the operators with state, by their number: Spark tells of them in that order.

    ``rows`` are Spark's own count: of keys in most operators, of the rows of all state variables in a
    transformWithState, and of what both sides of a join keep.
    """
    told = (event or {}).get("stateOperators") or []
    return [_operator(number, each) for number, each in enumerate(told)]


def sources_of(event: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return where each source is after the batch, and how many rows wait there if it tells."""
    return [_source(number, each) for number, each in enumerate((event or {}).get("sources") or [])]


def watermark_of(event: Mapping[str, Any] | None) -> str | None:
    """Return the watermark that the batch went by, None if the query has none (Spark then has that of 1970)."""
    found = ((event or {}).get("eventTime") or {}).get("watermark")
    return None if found is None or str(found).startswith("1970-01-01T00:00:00") else str(found)


def _operator(number: int, told: Mapping[str, Any]) -> dict[str, Any]:
    custom = told.get("customMetrics") or {}
    on_disk = next((custom[name] for name in _SIZES if name in custom), None)
    return {
        "operator": number,
        "operatorName": told.get("operatorName"),
        "rows": told.get("numRowsTotal"),
        "rowsUpdated": told.get("numRowsUpdated"),
        "rowsRemoved": told.get("numRowsRemoved"),
        "rowsDroppedByWatermark": told.get("numRowsDroppedByWatermark"),
        "bytes": on_disk if on_disk is not None else told.get("memoryUsedBytes"),
        "memoryBytes": told.get("memoryUsedBytes"),
        "partitions": told.get("numShufflePartitions"),
    }


def _source(number: int, told: Mapping[str, Any]) -> dict[str, Any]:
    lag = lag_of([dict(told)])
    return {
        "source": number,
        "description": told.get("description"),
        "start": told.get("startOffset"),
        "end": told.get("endOffset"),
        "latest": told.get("latestOffset"),
        "lagRows": None if lag == UNKNOWN else lag,
        "rows": told.get("numInputRows"),
        "rowsPerSecond": {"input": told.get("inputRowsPerSecond"), "processed": told.get("processedRowsPerSecond")},
        "metrics": told.get("metrics") or {},
    }
