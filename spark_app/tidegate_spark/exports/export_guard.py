"""Refuses a query that would start without a part of the application's export. Talks to the JVM."""

from __future__ import annotations

from typing import Any

from tidegate_spark.exports import use
from tidegate_spark.exports.use import Part
from tidegate_spark.queries import query_messages as messages

_LACKS = {
    frozenset({Part.STATE}): (messages.STATE_FORGOTTEN),
    frozenset({Part.OFFSETS}): (messages.OFFSETS_FORGOTTEN),
}
_NOTHING = messages.EXPORT_FORGOTTEN


def refusal_of(session: Any, export: str, query: str, checkpoint: str) -> str:
    """Return why a query must not start, empty if it may.

    Only the script knows which query starts with what, and by which functions. If it has not asked for all that the
    export has when its first query is about to begin, that was forgotten; a query that has batches began long ago.

    Args:
        session: the Spark session.
        export: address of the export's manifest.
        query: the query's name.
        checkpoint: where its checkpoint is, or will be.
    """
    uses = use.seen()
    forgotten = frozenset(uses.forgotten())
    if not forgotten or _has_begun(session, checkpoint):
        return ""
    # Where nothing was asked for, nobody has looked what the export has.
    lacks = _LACKS[forgotten] if uses.asked else _NOTHING
    return f"{query!r} starts from {export} (spec.startFrom.exportedState), and the script {lacks}"


def _has_begun(session: Any, checkpoint: str) -> bool:
    place = session._jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/offsets")
    store = place.getFileSystem(session._jsc.hadoopConfiguration())
    return bool(store.exists(place)) and len(store.listStatus(place)) > 0
