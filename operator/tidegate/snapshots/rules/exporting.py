"""Rules for the export of a complete snapshot. No I/O.

The snapshot stays Ready; the condition Exported and ``status.export`` have the result. An export always ends: its time
counts from its start, and a failed one is not retried before ``spec.export.nonce`` changes.
"""

from __future__ import annotations

import dataclasses
import datetime

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.stream_snapshot import (
    ExportPhase,
    ExportSpec,
    SnapshotExport,
    SnapshotPhase,
    StreamSnapshot,
    is_to_be_exported,
    is_to_be_verified,
)
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.conditions import time_in_status
from tidegate.engine.rules.pauses import clocks_time_left, time_left
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.faults import IMAGE_REASONS, KILLED_BY_MEMORY, Problem
from tidegate.pods.records.names import EXPORT_CONTAINER, export_pod_name
from tidegate.pods.records.record import PodRecord, Waiting
from tidegate.snapshots.actions import CountExport, CreateSnapshotPod, DeleteSnapshotPod, ForgetRefusal, SnapshotAction
from tidegate.snapshots.builders.export_pod import build_order
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import messages, pods
from tidegate.snapshots.rules.taking import keep_final
from tidegate.snapshots.rules.verdict import Exporting, SnapshotVerdict, forget_refusal, reason_of, refers_to_its_app
from tidegate.snapshots.rules.verifying import read_back
from tidegate_spark.contract.reasons import AnyReason, Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders, SnapshotReport, SnapshotState

TIMED_OUT, EVICTED = "DeadlineExceeded", "Evicted"
"""Reasons of the kubelet's: the pod's time is over; it used more of its node than there was."""
IMAGE_PATIENCE = 120.0
"""Seconds for which an image is waited for that a registry does not give."""
_MAY_PASS = frozenset({"ErrImagePull", "ImagePullBackOff"})


def write_out(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have a pod write the state, and say what came of it."""
    kept = _kept(o, now)
    if kept is None or not is_to_be_exported(o.snapshot):
        return None
    asked = o.snapshot.spec.export
    assert asked is not None
    # Keep the refusal of the export's pod.
    kept = dataclasses.replace(kept, after=tuple(a for a in kept.after if not isinstance(a, ForgetRefusal)))
    pod = o.exporting
    wanted = pod is not None and pod.name == export_pod_name(snapshot_id(o.snapshot.metadata), asked.nonce)
    ended = _ended(o, asked, pod, now) if pod is not None and wanted and not pod.terminating else None
    if ended is not None:
        return _end(o, kept, ended)
    if kept.phase is not SnapshotPhase.READY:
        return cut_off(o, kept, messages.EXPORT_OF_DAMAGED, now)
    if pod is None:
        return _begin(o, kept, asked, now)
    if not wanted:
        return _with_message(o, kept, asked, _remove_earlier(kept, pod), now)
    at_work = pods.follow(o, pod, kept.phase, now, messages.WORK_EXPORT)
    at_work = dataclasses.replace(at_work, wake_after=earliest(at_work.wake_after, _image_patience(pod, now)))
    return _with_message(o, kept, asked, at_work, now)


def remove_leftover(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Remove the pod of an export that nobody wants any more, and the record of one that did not end."""
    known = o.snapshot.status.export
    unfinished = known is not None and not known.has_ended
    if is_to_be_exported(o.snapshot) or (o.exporting is None and not unfinished):
        return None
    kept = _kept(o, now)
    if kept is None:
        return None
    if unfinished and o.snapshot.spec.export is not None:  # an earlier operator left the record
        return kept if kept.phase is SnapshotPhase.READY else cut_off(o, kept, messages.EXPORT_OF_DAMAGED, now)
    pod = o.exporting
    gone: tuple[SnapshotAction, ...] = () if pod is None or pod.terminating else (DeleteSnapshotPod(pod),)
    if gone and not is_to_be_verified(o.snapshot):
        gone = (*forget_refusal(o), *gone)
    said = Exporting("Unknown", Reason.CANCELLED, messages.EXPORT_CANCELLED, None)
    return dataclasses.replace(kept, after=(*kept.after, *gone), exporting=said if unfinished else kept.exporting)


def cut_off(o: SnapshotObservation, judged: SnapshotVerdict, message: str, now: float) -> SnapshotVerdict:
    """Return a verdict by which nothing is whole that could be exported, with the end of the export that is asked for.

    Args:
        o: the observation; ``spec.export`` is set.
        judged: what is said and done of the snapshot; its reason is the export's, too.
        message: why the export ends.
        now: seconds since the epoch.
    """
    asked = o.snapshot.spec.export
    assert asked is not None
    return _end(o, judged, _failed(o.snapshot, asked, judged.reason, message, now))


def _kept(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Return what is said and done of a final snapshot otherwise, its being read back among that."""
    return read_back(o, now) or keep_final(o, now)


def _begin(o: SnapshotObservation, kept: SnapshotVerdict, asked: ExportSpec, now: float) -> SnapshotVerdict:
    if pods.namespace_goes(o):
        return kept
    if any(isinstance(action, CreateSnapshotPod) for action in kept.after):
        # One pod after the other, because a refusal is remembered for one.
        return dataclasses.replace(kept, wake_after=0.0)
    try:
        order = build_order(o.snapshot, o.app if refers_to_its_app(o) else None)
    except ValueError as error:
        return _end(o, kept, _failed(o.snapshot, asked, Reason.INVALID_SPEC, messages.export_invalid(error), now))
    return _with_message(o, kept, asked, pods.begin(o, SnapshotOrders(export=(order,)), kept.phase, now), now)


def _remove_earlier(kept: SnapshotVerdict, pod: PodRecord) -> SnapshotVerdict:
    gone: tuple[SnapshotAction, ...] = () if pod.terminating else (DeleteSnapshotPod(pod),)
    message = messages.pod_of_earlier_export_deleted(pod.name)
    return SnapshotVerdict(kept.phase, kept.health, Reason.POD_REPLACED, message, after=gone)


def _with_message(
    o: SnapshotObservation,
    kept: SnapshotVerdict,
    asked: ExportSpec,
    at_work: SnapshotVerdict,
    now: float,
) -> SnapshotVerdict:
    """Return what is kept, with what is done and said about the export; its end, if its time is over."""
    # The kubelet's own deadline begins when a node has the pod, and again with each pod.
    left = time_left(_started_at(o.snapshot, asked, now).timestamp(), asked.timeout_seconds, now)
    if not left:
        message = messages.export_late(asked.timeout_seconds, at_work.message)
        return _end(o, kept, _failed(o.snapshot, asked, Reason.DEADLINE_EXCEEDED, message, now))
    running = SnapshotExport(
        nonce=asked.nonce,
        phase=ExportPhase.RUNNING,
        format=asked.format.value,
        start_time=_started_at(o.snapshot, asked, now),
    )
    return dataclasses.replace(
        kept,
        before=(*kept.before, *at_work.before),
        after=(*kept.after, *at_work.after),
        exporting=Exporting("Unknown", at_work.reason, at_work.message, running),
        wake_after=earliest(kept.wake_after, at_work.wake_after, left),
    )


def _ended(o: SnapshotObservation, asked: ExportSpec, pod: PodRecord, now: float) -> Exporting | None:
    """Return what an export came to whose pod does nothing more for it, None if it is still at it."""
    if pod.phase == "Failed" and pod.reason in (TIMED_OUT, EVICTED):
        if pod.reason == EVICTED:
            message = messages.export_evicted(pod.name, pod.message)
            return _failed(o.snapshot, asked, Reason.EVICTED, message, now)
        last = pods.pods_report(o, pod)
        message = messages.export_late(asked.timeout_seconds, last.message if last is not None else "")
        return _failed(o.snapshot, asked, Reason.DEADLINE_EXCEEDED, message, now)
    hopeless = _hopeless_problem(pod, now)
    if hopeless is not None:
        return _failed(o.snapshot, asked, hopeless.reason, hopeless.message, now)
    report = pods.pods_report(o, pod)
    if report is None or not pods.has_done_its_work(pod):
        return None
    if report.state is SnapshotState.EXPORTED:
        return _complete(o.snapshot, asked, report, now)
    reason = reason_of(report, Reason.EXPORT_FAILED)
    return _failed(o.snapshot, asked, reason, messages.export_failed(report, reason), now)


def _hopeless_problem(pod: PodRecord, now: float) -> Problem | None:
    """Return what another start of the pod would not change."""
    if pod.ended is not None and pod.ended.reason == KILLED_BY_MEMORY:
        return Problem(Reason.OUT_OF_MEMORY, messages.export_out_of_memory(pod.name))
    waiting = _refused_image(pod)
    if waiting is None or _image_patience(pod, now):
        return None
    # The pod goes, and its events with it.
    return Problem(Reason.IMAGE_PULL_FAILED, messages.export_image_not_pulled(waiting.image, waiting.message))


def _refused_image(pod: PodRecord) -> Waiting | None:
    waiting = pod.waiting
    own = waiting is not None and waiting.container == EXPORT_CONTAINER and waiting.reason in IMAGE_REASONS
    return waiting if own else None


def _image_patience(pod: PodRecord, now: float) -> float | None:
    """Return for how many seconds its image is still waited for: registries have bad moments."""
    waiting = _refused_image(pod)
    if waiting is None or waiting.reason not in _MAY_PASS:
        return None
    return clocks_time_left(pod.created_at, IMAGE_PATIENCE, now) or None


def _complete(snapshot: StreamSnapshot, asked: ExportSpec, report: SnapshotReport, now: float) -> Exporting:
    made = SnapshotExport(
        nonce=asked.nonce,
        phase=ExportPhase.COMPLETED,
        format=asked.format.value,
        uri=report.manifest,
        digest=report.digest,
        tables=report.files,
        rows=report.rows,
        bytes=report.bytes,
        message=report.message,
        start_time=_started_at(snapshot, asked, now),
        completion_time=time_in_status(now),
    )
    return Exporting("True", Reason.COMPLETED, report.message, made)


def _failed(snapshot: StreamSnapshot, asked: ExportSpec, reason: AnyReason, message: str, now: float) -> Exporting:
    made = SnapshotExport(
        nonce=asked.nonce,
        phase=ExportPhase.FAILED,
        format=asked.format.value,
        message=message,
        start_time=_started_at(snapshot, asked, now),
        completion_time=time_in_status(now),
    )
    return Exporting("False", reason, message, made)


def _end(o: SnapshotObservation, kept: SnapshotVerdict, ended: Exporting) -> SnapshotVerdict:
    pod = o.exporting
    complete = ended.status == "True"
    events = PublishEvent(
        Reason.SNAPSHOT_EXPORTED if complete else Reason.SNAPSHOT_NOT_EXPORTED,
        ended.message,
        not complete,
        ended.reason,
    )
    forgotten = () if is_to_be_verified(o.snapshot) else forget_refusal(o)
    gone: tuple[SnapshotAction, ...] = () if pod is None or pod.terminating else (DeleteSnapshotPod(pod),)
    done: tuple[SnapshotAction, ...] = (events, CountExport(complete), *forgotten, *gone)
    new = tuple(action for action in done if action not in kept.after)
    return dataclasses.replace(kept, after=(*kept.after, *new), exporting=ended)


def _started_at(snapshot: StreamSnapshot, asked: ExportSpec, now: float) -> datetime.datetime:
    known = snapshot.status.export
    begun = known.start_time if known is not None and known.nonce == asked.nonce else None
    # One that is to come was noted by a clock that was ahead, as that of an operator before this one.
    return begun if begun is not None and begun.timestamp() <= now else time_in_status(now)
