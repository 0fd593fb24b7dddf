"""Reads what Spark has in memory of a query's offset log. Talks to the JVM."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery


def planned_offsets(query: StreamingQuery, batch: int) -> str:
    """Return the offsets that Spark has written down for a batch, as its ``OffsetSeq`` prints them; empty if unknown.

    Of the batch that runs they are in memory (``HDFSMetadataLog.batchCache``): unlike a look into the storage this
    costs no request while the batch's tasks wait for it.
    """
    try:
        found = query._jsq.streamingQuery().offsetLog().get(batch)
        return str(found.get().toString()) if found.isDefined() else ""
    except (Py4JError, OSError):  # a JVM that ends, or has another inside than we know: the storage is asked
        return ""
