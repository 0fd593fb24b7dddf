"""Builds the status of a snapshot from an observation and a verdict, and decides whether to write it. No I/O."""

from __future__ import annotations

import msgspec

from tidegate.api.snapshot_identity import stored_id
from tidegate.api.status.bounds import LONGEST_TEXT, MOST_ITEMS
from tidegate.api.status.status import Condition
from tidegate.api.stream_snapshot import (
    EXPORTED,
    VERIFIED,
    SnapshotApp,
    SnapshotManifest,
    SnapshotPhase,
    SnapshotProgress,
    SnapshotQuery,
    SnapshotVerification,
    SnapshotVersion,
    StreamSnapshotStatus,
    is_imported,
)
from tidegate.engine.rules.conditions import build_conditions, time_in_status, transition_time
from tidegate.engine.rules.pauses import time_left
from tidegate.pods.records.names import number_of_verify_pod
from tidegate.snapshots.builders.snapshot_pod import storage_of, storage_of_import
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules.verdict import Exporting, SnapshotVerdict, Verification, refers_to_its_app
from tidegate.snapshots.rules.version import image_of_version, image_taken, version_taken
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState

PROGRESS_INTERVAL = 10.0
"""Seconds between two writes of nothing but progress."""
MOST_OFFSETS = 256 * 1024
"""Characters of the queries' offsets that a status has, all of each or none; the manifest has those of every query."""
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi")


def build_snapshot_status(o: SnapshotObservation, verdict: SnapshotVerdict, now: float) -> StreamSnapshotStatus:
    """Return what the status should be."""
    old, generation = o.snapshot.status, o.snapshot.metadata.generation
    status = msgspec.structs.replace(
        old,
        phase=verdict.phase,
        conditions=build_conditions(old.conditions, verdict, generation, now)
        + _verified(o, verdict, now)
        + _exported(o, verdict, now),
        observed_generation=generation,
        verification=_verification(o, verdict, now),
        export=verdict.exporting.export if verdict.exporting is not None else old.export,
    )
    if verdict.begins or old.snapshot_id:
        status = _with_intent(o, status, now)
    if verdict.begins and not is_imported(o.snapshot):
        # Each time: between two orders the application may have been upgraded.
        status = msgspec.structs.replace(status, version=version_taken(o), image=image_taken(o))
    report = verdict.report
    if report is not None and verdict.phase is SnapshotPhase.COPYING:
        status = msgspec.structs.replace(status, progress=_progress_of(report))
    if report is not None and report.state is SnapshotState.READY:
        status = _with_results(o, status, report, now)
    return status


def snapshot_write_is_due_in(o: SnapshotObservation, new: StreamSnapshotStatus, now: float) -> float | None:
    """Return in how many seconds the new status is to be written: 0 is now, None is never."""
    old = o.snapshot.status
    if is_news(old, new):
        return 0.0
    return time_left(o.memory.status_written_at, PROGRESS_INTERVAL, now) if old != new else None


def is_news(old: StreamSnapshotStatus, new: StreamSnapshotStatus) -> bool:
    """Return whether a status differs in more than how far the snapshot has got."""
    return _core(old) != _core(new)


def human_size(size: int) -> str:
    """Return a number of bytes as people read it, such as 1.2Gi."""
    value, unit = float(max(size, 0)), ""
    for larger in _UNITS:
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}{unit}" if unit and value < 10 else f"{value:.0f}{unit}"


def size_of(status: StreamSnapshotStatus) -> int | None:
    """Return the bytes of a complete snapshot, None if its status does not say: it was lost in part, or edited."""
    return status.bytes if status.bytes or status.size == human_size(0) else None


def _verified(o: SnapshotObservation, verdict: SnapshotVerdict, now: float) -> tuple[Condition, ...]:
    """Return the condition Verified; there is none until somebody asks."""
    return _said(o, VERIFIED, verdict.verification, now)


def _exported(o: SnapshotObservation, verdict: SnapshotVerdict, now: float) -> tuple[Condition, ...]:
    """Return the condition Exported, likewise."""
    return _said(o, EXPORTED, verdict.exporting, now)


def _said(
    o: SnapshotObservation, kind: str, said: Verification | Exporting | None, now: float
) -> tuple[Condition, ...]:
    old = o.snapshot.status.condition(kind)
    if said is None:
        return (old,) if old is not None else ()
    since = transition_time(old, said.status, now)
    return (
        Condition(
            type=kind,
            status=said.status,
            reason=said.reason,
            message=said.message,
            observed_generation=o.snapshot.metadata.generation,
            last_transition_time=since,
        ),
    )


def _verification(o: SnapshotObservation, verdict: SnapshotVerdict, now: float) -> SnapshotVerification | None:
    said = verdict.verification
    if said is None or said.ended is None:
        return o.snapshot.status.verification
    number = number_of_verify_pod(o.verifying.name) if o.verifying is not None else None
    return SnapshotVerification(
        nonce=o.snapshot.spec.verify_nonce if number is None else number,
        completion_time=time_in_status(now),
        files=said.ended.files,
        bytes=said.ended.bytes,
    )


def _core(status: StreamSnapshotStatus) -> StreamSnapshotStatus:
    # People and programs wait for phases and conditions; messages and numbers may be late.
    silent = tuple(msgspec.structs.replace(condition, message="") for condition in status.conditions)
    return msgspec.structs.replace(status, conditions=silent, progress=None)


def _with_intent(o: SnapshotObservation, status: StreamSnapshotStatus, now: float) -> StreamSnapshotStatus:
    app = o.app if refers_to_its_app(o) else None
    status = msgspec.structs.replace(
        status, snapshot_id=stored_id(o.snapshot), start_time=status.start_time or time_in_status(now)
    )
    if is_imported(o.snapshot):
        return msgspec.structs.replace(status, storage=storage_of_import(o.snapshot))
    if app is None:
        return status
    # The access to the storage may change; the snapshot's origin may not, once it is complete.
    status = msgspec.structs.replace(status, storage=storage_of(app))
    if status.ready_time is not None or status.app is not None:
        return status
    return msgspec.structs.replace(status, app=SnapshotApp(uid=app.metadata.uid, lineage=app.status.lineage))


def _with_results(
    o: SnapshotObservation, status: StreamSnapshotStatus, report: SnapshotReport, now: float
) -> StreamSnapshotStatus:
    queries = _queries(report)
    owner, image = status.app, status.image
    if owner is not None and o.app is not None:
        # It may have been complete before an upgrade. Not as reported: exports run in it, and programs report.
        image = image_of_version(o.app, report.spec_hash) or image
    if owner is not None and report.lineage:
        owner = SnapshotApp(uid=owner.uid, lineage=report.lineage)
    if owner is None:
        # The origin of an imported snapshot is known only now.
        owner, image = SnapshotApp(uid=report.app_uid, lineage=report.lineage, name=report.app), report.image
    return msgspec.structs.replace(
        status,
        app=owner,
        image=image,
        version=_version(status, report),
        ready_time=status.ready_time or time_in_status(now),
        progress=None,
        queries=queries,
        batch=max((query.batch_id for query in queries), default=None),
        files=report.files,
        bytes=report.bytes,
        new_bytes=report.new_bytes,
        size=human_size(report.bytes),
        new_size=human_size(report.new_bytes),
        parent=report.parent,
        spark_version=report.spark_version,
        manifest=SnapshotManifest(uri=report.manifest, digest=report.digest),
    )


def _queries(report: SnapshotReport) -> tuple[SnapshotQuery, ...]:
    """Return the queries that a status has room for, with the offsets of the first."""
    left = MOST_OFFSETS
    queries: list[SnapshotQuery] = []
    for name, pin in sorted(report.queries.items())[:MOST_ITEMS]:
        fits = len(pin.offsets) <= min(left, LONGEST_TEXT)
        left -= len(pin.offsets) if fits else 0
        queries.append(SnapshotQuery(name=name, batch_id=pin.batch, offsets=pin.offsets if fits else ""))
    return tuple(queries)


def _version(status: StreamSnapshotStatus, report: SnapshotReport) -> SnapshotVersion | None:
    """Return the version that the manifest names; its spec need not be in the answer where it is known."""
    known = status.version
    if not report.spec_hash or (known is not None and known.spec_hash == report.spec_hash):
        return known
    return SnapshotVersion(spec_hash=report.spec_hash, spec=report.spec)


def _progress_of(report: SnapshotReport) -> SnapshotProgress:
    return SnapshotProgress(files=report.files, of_files=report.of_files, bytes=report.bytes, of_bytes=report.of_bytes)
