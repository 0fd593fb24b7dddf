"""What a snapshot's own pod reports, and how one is started. No I/O."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from tidegate.api.snapshot_identity import stored_id
from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot, is_imported
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.engine.rules.actions import EnsureAccess
from tidegate.engine.rules.health import Health, health_without_start
from tidegate.engine.rules.pauses import clocks_time_left, refused_for
from tidegate.pods.builders.storage_pod import hash_of_taken
from tidegate.pods.records.fault_messages import helper_out_of_memory, helper_out_of_memory_without_app
from tidegate.pods.records.faults import KILLED_BY_MEMORY, Problem, has_failed, is_json, start_problem
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord, process_of
from tidegate.snapshots.actions import CreateSnapshotPod, DeleteSnapshotPod
from tidegate.snapshots.builders.export_pod import build_export_pod, hash_of_export
from tidegate.snapshots.builders.snapshot_pod import build_snapshot_pod, name_pod, storage_of_import
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import messages
from tidegate.snapshots.rules.verdict import SnapshotVerdict, find_report, refers_to_its_app
from tidegate_spark.contract.protocol import ROLE_EXPORT, from_report
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders, SnapshotReport, SnapshotReports, SnapshotState

_WORK = {
    SnapshotPhase.DELETING: messages.WORK_DELETE,
    SnapshotPhase.COPYING: messages.WORK_COPY,
    SnapshotPhase.READY: messages.WORK_VERIFY,
}
SILENT_PAUSE = 30.0
"""Seconds after the end of a pod that said nothing of its snapshot until another one is made."""


def pods_report(o: SnapshotObservation, pod: PodRecord) -> SnapshotReport | None:
    """Return the termination message of a pod about the snapshot, None if there are none."""
    reported = _parse(pod.ended.message) if pod.ended is not None else None
    return find_report(reported.snapshots, o.snapshot) if reported is not None else None


def has_done_its_work(pod: PodRecord) -> bool:
    """Return whether the pod's process ended and will not be started again."""
    return pod.phase == "Succeeded"


def follow(o: SnapshotObservation, pod: PodRecord, phase: SnapshotPhase, now: float, work: str = "") -> SnapshotVerdict:
    """Say how a pod is doing whose work is not done; one that gets nowhere is replaced. ``work``: what it does else."""
    if pod.terminating:
        message = messages.pod_deleted(pod.name)
        return SnapshotVerdict(phase, Health.RECONCILING, Reason.POD_REPLACED, message)
    if pod.phase == "Failed" or _is_of_an_older_spec(o, pod):
        message = messages.pod_replaced(pod.name)
        return SnapshotVerdict(phase, Health.RECONCILING, Reason.POD_REPLACED, message, after=(DeleteSnapshotPod(pod),))
    if has_done_its_work(pod):
        return _without_result(o, pod, phase, now)
    problem = start_problem(pod) or _failure_problem(o, pod)
    if problem is not None:
        return SnapshotVerdict(phase, health_without_start(problem.reason), problem.reason, problem.message)
    reported = o.memory.progress
    if reported is not None and reported.process == process_of(pod) and reported.report.state is SnapshotState.COPYING:
        what = work or (messages.WORK_VERIFY if phase is SnapshotPhase.READY else messages.WORK_COPY)
        message = messages.pod_progress(pod.name, what, reported.report.files, reported.report.of_files)
        return SnapshotVerdict(phase, Health.RECONCILING, Reason.POD_RUNNING, message, reported.report)
    what = work or _WORK.get(phase, messages.WORK_IMPORT)
    return SnapshotVerdict(phase, Health.RECONCILING, Reason.POD_RUNNING, messages.pod_works(pod.name, what))


def _without_result(o: SnapshotObservation, pod: PodRecord, phase: SnapshotPhase, now: float) -> SnapshotVerdict:
    """Say what becomes of a pod that has ended, and of whose work nothing is known."""
    report = pods_report(o, pod)
    if report is not None and report.state is SnapshotState.UNKNOWN:
        # Another pod of the same image would end in the same state.
        return SnapshotVerdict(phase, Health.STALLED, Reason.UNKNOWN, messages.of_report(report, Reason.UNKNOWN))
    if _has_unknown_report(pod):  # a newer operator needs this report, which goes with the pod
        message = messages.unknown_termination(pod.name)
        return SnapshotVerdict(phase, Health.STALLED, Reason.UNKNOWN_TERMINATION, message)
    left = time_left_since_end(pod, SILENT_PAUSE, now)
    after = () if left else (DeleteSnapshotPod(pod),)
    message = messages.no_report(pod.name, pod.namespace)
    return SnapshotVerdict(phase, Health.STALLED, Reason.NO_REPORT, message, after=after, wake_after=left or None)


def time_left_since_end(pod: PodRecord, pause: float, now: float) -> float:
    """Return the seconds left of a pause since a pod ended.

    While its node's clock is too far ahead to be believed, the pause counts from the pod's creation, which the API
    server's clock shows: another pod would end in such a time, too, and be replaced again and again without a pause.
    """
    ended = pod.ended.completion_time if pod.ended is not None else pod.created_at
    return clocks_time_left(ended if ended <= now + pause else pod.created_at, pause, now)


def begin(o: SnapshotObservation, orders: SnapshotOrders, phase: SnapshotPhase, now: float) -> SnapshotVerdict:
    """Begin a pod, or say why the API server takes none.

    Args:
        o: the observation.
        orders: what it is to do.
        phase: of the snapshot meanwhile.
        now: seconds since the epoch.
    """
    name = name_pod(o.snapshot, orders)
    refusal = o.memory.refusal
    if refusal is not None and refusal.pod_name == name:
        left = refused_for(refusal.at, refusal.attempts, now)
        if left:
            return SnapshotVerdict(phase, Health.STALLED, refusal.reason, refusal.message, wake_after=left)
    try:
        app = o.app if refers_to_its_app(o) else None
        create = CreateSnapshotPod(_build(_identified(o), app, orders, o.platform))
    except SpecError as error:
        return SnapshotVerdict(phase, Health.STALLED, Reason.INVALID_SPEC, messages.pod_not_built(error))
    # Without its application the pod runs as an account that always exists.
    access = (EnsureAccess(),) if app is not None and not app.spec.service_account_name else ()
    message = messages.pod_starts(name, without_driver=bool(orders.take or orders.dispose))
    return SnapshotVerdict(phase, Health.RECONCILING, Reason.POD_STARTING, message, before=access, after=(create,))


def namespace_goes(o: SnapshotObservation) -> bool:
    """Return whether the namespace is being deleted, and takes no pod any more."""
    return o.memory.refusal is not None and o.memory.refusal.reason == Reason.NAMESPACE_TERMINATING


def _build(
    snapshot: StreamSnapshot, app: StreamingApp | None, orders: SnapshotOrders, platform: Platform
) -> dict[str, Any]:
    if orders.export:
        return build_export_pod(snapshot, app, platform)
    return build_snapshot_pod(snapshot, app, orders, platform)


def _identified(o: SnapshotObservation) -> StreamSnapshot:
    storage = storage_of_import(o.snapshot) if is_imported(o.snapshot) else o.snapshot.status.storage
    status = msgspec.structs.replace(o.snapshot.status, snapshot_id=stored_id(o.snapshot), storage=storage)
    return msgspec.structs.replace(o.snapshot, status=status)


def _is_of_an_older_spec(o: SnapshotObservation, pod: PodRecord) -> bool:
    # A pod from before a fix of the spec would continue with the fault. Only what it takes from the application counts,
    # so that a new version does not end hours of work.
    if o.app is None or not refers_to_its_app(o):
        return False
    made_of = hash_of_export(o.snapshot, o.app) if pod.role == ROLE_EXPORT else hash_of_taken(o.app)
    return pod.spec_hash != made_of


def _failure_problem(o: SnapshotObservation, pod: PodRecord) -> Problem | None:
    """Return why the process in the pod ended, if the kubelet is to start it again."""
    if pod.ended is None or not has_failed(pod):
        return None
    reported = pods_report(o, pod)
    if reported is not None and reported.message:
        return Problem(reported.reason or Reason.SNAPSHOT_POD_FAILED, messages.pod_retries(reported.message, pod.name))
    if _has_unknown_report(pod):
        return Problem(Reason.UNKNOWN_TERMINATION, messages.unknown_termination(pod.name))
    if pod.ended.reason == KILLED_BY_MEMORY:
        message_of = helper_out_of_memory if refers_to_its_app(o) else helper_out_of_memory_without_app
        message = message_of(pod.name, pod.namespace)
    else:
        message = messages.pod_failed(pod.name, pod.namespace, pod.ended.exit_code)
    return Problem(Reason.SNAPSHOT_POD_FAILED, message)


def _has_unknown_report(pod: PodRecord) -> bool:
    """Return whether a pod left a termination message of an unknown form: its runtime is newer."""
    return pod.ended is not None and is_json(pod.ended.message) and _parse(pod.ended.message) is None


@functools.lru_cache(64)
def _parse(termination: str) -> SnapshotReports | None:
    try:
        return from_report(SnapshotReports, termination) if is_json(termination) else None
    except ValueError:
        return None
