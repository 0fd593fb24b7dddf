"""Keeps a query from beginning with nothing where the application is to begin with an export. Talks to the JVM."""

from __future__ import annotations

from typing import Any

from tidegate_spark.exports import use


def refusal_of(session: Any, export: str, query: str, checkpoint: str) -> str:
    """Return why a query must not start, empty if it may.

    Only the script knows which query begins with what, and by which functions. If it has not asked for anything of the
    export when its first query is about to begin, it was forgotten; a query that has batches began long ago.

    Args:
        session: the Spark session.
        export: address of the export's manifest.
        query: the query's name.
        checkpoint: where its checkpoint is, or will be.
    """
    if use.has_asked() or _has_begun(session, checkpoint):
        return ""
    return (
        f"the application is to begin with {export} (spec.startFrom.export), and its script asked for nothing of that "
        f"before {query!r} began: call tidegate_spark.initial_state() or starting_offsets(), or leave startFrom out."
    )


def _has_begun(session: Any, checkpoint: str) -> bool:
    place = session._jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/offsets")
    store = place.getFileSystem(session._jsc.hadoopConfiguration())
    return bool(store.exists(place)) and len(store.listStatus(place)) > 0
