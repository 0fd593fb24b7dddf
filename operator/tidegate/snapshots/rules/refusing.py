"""Refuses a snapshot behind too many others that wait: anybody may create any number. No I/O."""

from __future__ import annotations

from tidegate.api.stream_snapshot import LABEL_OF_MESSAGE, SnapshotPhase, is_at_deletion, is_imported, is_scheduled
from tidegate.engine.rules.health import Health
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import messages
from tidegate.snapshots.rules.verdict import SnapshotVerdict
from tidegate_spark.contract.protocol import SNAPSHOT_FINALIZER
from tidegate_spark.contract.reasons import Reason

MOST_OPEN = 100
"""Snapshots on their way of one application, imported into one namespace, or of its applications that do not exist.

Each imported one has a pod, and each look at an application's weighs the others."""


def refuse_too_many(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Refuse one behind more than anybody asks for who means well; what was accepted before goes on.

    Those that Tidegate makes itself have as much room again: nobody's wishes keep a schedule or an end from its own.
    Whoever copies their labels has that room too, and no more.
    """
    snapshot, most = o.snapshot, 2 * MOST_OPEN if _is_of_tidegate(o) else MOST_OPEN
    if snapshot.status.conditions or SNAPSHOT_FINALIZER in snapshot.metadata.finalizers:
        return None
    app, namespace = snapshot.app_key[1], snapshot.metadata.namespace
    if o.waiting.number >= most:
        of_app = messages.too_many_of_app(app, most)
        message = messages.too_many_imports(namespace, most) if is_imported(snapshot) else of_app
    elif o.without_app.number >= most:
        message = messages.too_many_without_app(app, namespace, most)
    else:
        return None
    return SnapshotVerdict(SnapshotPhase.FAILED, Health.STALLED, Reason.TOO_MANY_SNAPSHOTS, message)


def _is_of_tidegate(o: SnapshotObservation) -> bool:
    of_message = o.snapshot.metadata.labels.get(LABEL_OF_MESSAGE) == "true"
    return of_message or is_scheduled(o.snapshot) or is_at_deletion(o.snapshot)
