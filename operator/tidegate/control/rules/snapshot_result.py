"""The rule for messages that asked for a snapshot, once the driver has done its part. No I/O.

Such a message ends when its StreamSnapshot is Ready, or a dump's files are written, whether or not the driver still
runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.api.control_message import MessagePhase
from tidegate.api.snapshot_identity import ANNOTATION_SNAPSHOT_ID
from tidegate.api.stream_snapshot import EXPORTED, ExportPhase, SnapshotExport, SnapshotPhase, StreamSnapshot
from tidegate.control.builders.message_snapshot import build_message_snapshot, message_snapshot_name, taken_id
from tidegate.control.rules import messages
from tidegate.control.rules.verdict import MessageVerdict, Seen, refers_to_its_app
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.control_protocol import CLUSTER_TYPES, SNAPSHOT, MessageState
from tidegate_spark.contract.reasons import Reason


def follow_snapshot(s: Seen, now: float) -> MessageVerdict | None:
    """Have a StreamSnapshot made of what the driver took, and say what comes of that."""
    if s.message.spec.type not in CLUSTER_TYPES:
        return None
    made = s.snapshot
    if made is None:
        return _make(s)
    name = made.metadata.name
    if made.metadata.annotations.get(ANNOTATION_SNAPSHOT_ID) != taken_id(s.message):
        return _failed(Reason.SNAPSHOT_NAME_TAKEN, messages.snapshot_name_taken(name))
    if made.metadata.deletion_timestamp is not None:
        return _failed(Reason.SNAPSHOT_DELETED, messages.snapshot_deleted(name))
    return _follow(s, made)


def _make(s: Seen) -> MessageVerdict | None:
    report, app, identity = s.report, s.o.app, taken_id(s.message)
    refused = s.o.memory.refused.get(s.message.metadata.uid)
    if refused is not None:
        return _failed(Reason.SNAPSHOT_REFUSED, messages.snapshot_refused(refused))
    if report is None or app is None or not refers_to_its_app(s) or report.state is not MessageState.DONE:
        return None
    if report.results.get("snapshot") != identity:
        return _failed(Reason.SNAPSHOT_FAILED, messages.snapshot_unconfirmed(identity))
    makes = build_message_snapshot(s.message, app)
    # Also while it is tried again: it is true until one is there.
    waits = s.o.memory.not_created.get(s.message.metadata.uid)
    if waits is not None and waits.lasts:
        return MessageVerdict(
            MessagePhase.PUBLISHED, Health.STALLED, Reason.SNAPSHOT_REFUSED, waits.message, makes=makes
        )
    taken = messages.snapshot_taken(identity, message_snapshot_name(s.message))
    message = waits.message if waits is not None else taken
    return MessageVerdict(MessagePhase.PUBLISHED, Health.RECONCILING, Reason.SNAPSHOT_TAKEN, message, makes=makes)


def _follow(s: Seen, made: StreamSnapshot) -> MessageVerdict:
    name, status = made.metadata.name, made.status
    ready = status.condition(Health.READY.value)
    progress = ready.message if ready is not None else ""
    if status.phase is SnapshotPhase.FAILED:
        return _failed(Reason.SNAPSHOT_FAILED, messages.of_snapshot(name, progress), _results(made))
    if status.phase is not SnapshotPhase.READY:
        return _going_on(Reason.SNAPSHOT_TAKEN, messages.snapshot_copying(name, progress), made)
    if s.message.spec.type == SNAPSHOT:
        return _done(messages.of_snapshot(name, progress), made)
    export = status.export
    if export is None or not export.has_ended:
        exported = status.condition(EXPORTED)
        waits = exported.message if exported is not None else ""
        return _going_on(Reason.EXPORTING, messages.exporting(name, waits), made)
    if export.phase is ExportPhase.COMPLETED:
        return _done(messages.exported(export.rows, export.tables), made, export)
    return _failed(Reason.EXPORT_FAILED, messages.of_snapshot(name, export.message), _results(made))


def _results(made: StreamSnapshot, export: SnapshotExport | None = None) -> dict[str, str]:
    found = {"streamSnapshot": made.metadata.name}
    if export is not None:
        found |= {"uri": export.uri, "digest": export.digest, "rows": str(export.rows), "format": export.format}
    return found


def _going_on(reason: Reason, message: str, made: StreamSnapshot) -> MessageVerdict:
    return MessageVerdict(MessagePhase.PUBLISHED, Health.RECONCILING, reason, message, results=_results(made))


def _done(message: str, made: StreamSnapshot, export: SnapshotExport | None = None) -> MessageVerdict:
    return MessageVerdict(MessagePhase.APPLIED, Health.READY, Reason.APPLIED, message, results=_results(made, export))


def _failed(reason: Reason, message: str, results: Mapping[str, str] | None = None) -> MessageVerdict:
    return MessageVerdict(MessagePhase.FAILED, Health.STALLED, reason, message, results=results or {})
