"""Rules for a complete snapshot whose state somebody wants as plain files. No I/O.

It stays Ready meanwhile, and afterwards. The condition Exported and ``status.export`` say what came of it. An export
has an end, whatever happens: its pod is given a time, and what failed is not tried again before somebody says so.
"""

from __future__ import annotations

import dataclasses
import datetime

from tidegate.decide.actions import PublishEvent, ReleaseAccess
from tidegate.decide.rules import earliest
from tidegate.decide.snapshots import pods
from tidegate.decide.snapshots.actions import CountExport, CreateSnapshotPod, DeleteSnapshotPod, SnapshotAction
from tidegate.decide.snapshots.taking import REMEDIES, keep_final
from tidegate.decide.snapshots.verdict import Exporting, SnapshotVerdict, refers_to_its_app
from tidegate.decide.snapshots.verifying import read_back
from tidegate.model.stream_snapshot import (
    ExportPhase,
    ExportSpec,
    SnapshotExport,
    StreamSnapshot,
    is_to_be_exported,
    is_to_be_verified,
    snapshot_id,
)
from tidegate.observe.pods import PodRecord
from tidegate.observe.snapshot_observation import SnapshotObservation
from tidegate.resources.export_pod import build_order
from tidegate.resources.names import export_pod_name
from tidegate_spark.snapshot_protocol import SnapshotOrders, SnapshotReport, SnapshotState

TIMED_OUT, EVICTED = "DeadlineExceeded", "Evicted"
"""Reasons of the kubelet's: the pod's time is over; it used more of its node than there was."""


def write_out(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have a pod write the state, and say what came of it."""
    kept = _kept(o, now)
    if kept is None or not is_to_be_exported(o.snapshot):
        return None
    asked = o.snapshot.spec.export
    assert asked is not None
    # The access is needed on, and what the API server refused is to be remembered.
    kept = dataclasses.replace(kept, after=tuple(a for a in kept.after if not isinstance(a, ReleaseAccess)))
    pod = o.exporting
    if pod is None:
        return _begin(o, kept, asked, now)
    if pod.name != export_pod_name(snapshot_id(o.snapshot.metadata), asked.nonce):
        return _replace_earlier(o, kept, asked, pod, now)
    ended = None if pod.terminating else _ended(o, asked, pod, now)
    if ended is not None:
        return _end(o, kept, ended, pod)
    return _with_words(o, kept, asked, pods.follow(o, pod, kept.phase, now, "writes the state"), now)


def remove_leftover(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Remove the pod of an export that nobody wants any more, and the record of one that did not end."""
    known = o.snapshot.status.export
    unfinished = known is not None and not known.has_ended
    if is_to_be_exported(o.snapshot) or (o.exporting is None and not unfinished):
        return None
    kept = _kept(o, now)
    if kept is None:
        return None
    pod = o.exporting
    gone: tuple[SnapshotAction, ...] = () if pod is None or pod.terminating else (DeleteSnapshotPod(pod),)
    released: tuple[SnapshotAction, ...] = (ReleaseAccess(),) if gone and not is_to_be_verified(o.snapshot) else ()
    said = Exporting("Unknown", "NotWanted", "spec.export was taken away before it was complete.", None)
    return dataclasses.replace(
        kept, after=(*kept.after, *released, *gone), exporting=said if unfinished else kept.exporting
    )


def _kept(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Return what is said and done of a final snapshot otherwise, its being read back among that."""
    return read_back(o, now) or keep_final(o, now)


def _begin(o: SnapshotObservation, kept: SnapshotVerdict, asked: ExportSpec, now: float) -> SnapshotVerdict:
    if pods.namespace_goes(o):
        return kept
    if any(isinstance(action, CreateSnapshotPod) for action in kept.after):
        # One pod after the other: what the API server says of one is remembered by itself.
        return dataclasses.replace(kept, wake_after=0.0)
    try:
        order = build_order(o.snapshot, o.app if refers_to_its_app(o) else None)
    except ValueError as error:
        return _end(o, kept, _failed(o.snapshot, asked, "InvalidSpec", f"{error}.", now), None)
    return _with_words(o, kept, asked, pods.begin(o, SnapshotOrders(export=(order,)), kept.phase, now), now)


def _replace_earlier(
    o: SnapshotObservation, kept: SnapshotVerdict, asked: ExportSpec, pod: PodRecord, now: float
) -> SnapshotVerdict:
    gone: tuple[SnapshotAction, ...] = () if pod.terminating else (DeleteSnapshotPod(pod),)
    words = SnapshotVerdict(
        kept.phase, kept.health, "PodReplaced", f"Pod {pod.name}, of an earlier export, is removed.", after=gone
    )
    return _with_words(o, kept, asked, words, now)


def _with_words(
    o: SnapshotObservation, kept: SnapshotVerdict, asked: ExportSpec, at_work: SnapshotVerdict, now: float
) -> SnapshotVerdict:
    """Return what is kept, with what is done and said about the export."""
    running = SnapshotExport(
        nonce=asked.nonce,
        phase=ExportPhase.RUNNING,
        format=asked.format.value,
        started_at=_started_at(o.snapshot, asked, now),
    )
    return dataclasses.replace(
        kept,
        before=(*kept.before, *at_work.before),
        after=(*kept.after, *at_work.after),
        exporting=Exporting("Unknown", at_work.reason, at_work.message, running),
        wake_after=earliest(kept.wake_after, at_work.wake_after),
    )


def _ended(o: SnapshotObservation, asked: ExportSpec, pod: PodRecord, now: float) -> Exporting | None:
    """Return what an export came to whose pod does nothing more for it, None if it is still at it."""
    if pod.phase == "Failed" and pod.reason in (TIMED_OUT, EVICTED):
        if pod.reason == EVICTED:
            what = f"Pod {pod.name} was evicted: {pod.message}"
            return _failed(o.snapshot, asked, EVICTED, f"{what} To try again, change spec.export.nonce.", now)
        last = pods.pods_report(o, pod)
        why = f" {last.message}" if last is not None and last.message else ""
        what = f"It was not complete after {asked.timeout_seconds} s.{why}"
        remedy = "Raise spec.export.timeoutSeconds, cores or resources, and change spec.export.nonce."
        return _failed(o.snapshot, asked, TIMED_OUT, f"{what} {remedy}", now)
    report = pods.pods_report(o, pod)
    if report is None or not pods.has_done_its_work(pod):
        return None
    if report.state is SnapshotState.EXPORTED:
        return _complete(o.snapshot, asked, report, now)
    reason = report.reason.value or report.state.value
    message = f"{report.message.strip()} {REMEDIES.get(report.reason, '')}".strip()
    return _failed(o.snapshot, asked, reason, message, now)


def _complete(snapshot: StreamSnapshot, asked: ExportSpec, report: SnapshotReport, now: float) -> Exporting:
    made = SnapshotExport(
        nonce=asked.nonce,
        phase=ExportPhase.COMPLETE,
        format=asked.format.value,
        uri=report.manifest,
        digest=report.digest,
        tables=report.files,
        rows=report.rows,
        bytes=report.bytes,
        message=report.message,
        started_at=_started_at(snapshot, asked, now),
        finished_at=_time(now),
    )
    return Exporting("True", "Complete", report.message, made)


def _failed(snapshot: StreamSnapshot, asked: ExportSpec, reason: str, message: str, now: float) -> Exporting:
    made = SnapshotExport(
        nonce=asked.nonce,
        phase=ExportPhase.FAILED,
        format=asked.format.value,
        message=message,
        started_at=_started_at(snapshot, asked, now),
        finished_at=_time(now),
    )
    return Exporting("False", reason, message, made)


def _end(o: SnapshotObservation, kept: SnapshotVerdict, ended: Exporting, pod: PodRecord | None) -> SnapshotVerdict:
    complete = ended.status == "True"
    told = PublishEvent(
        "SnapshotExported" if complete else "SnapshotNotExported", ended.message, not complete, ended.reason
    )
    released: tuple[SnapshotAction, ...] = () if is_to_be_verified(o.snapshot) else (ReleaseAccess(),)
    gone: tuple[SnapshotAction, ...] = () if pod is None else (DeleteSnapshotPod(pod),)
    done: tuple[SnapshotAction, ...] = (told, CountExport(complete), *released, *gone)
    return dataclasses.replace(kept, after=(*kept.after, *done), exporting=ended)


def _started_at(snapshot: StreamSnapshot, asked: ExportSpec, now: float) -> datetime.datetime:
    known = snapshot.status.export
    begun = known.started_at if known is not None and known.nonce == asked.nonce else None
    return begun or _time(now)


def _time(now: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC)
