"""Rules for the verification of a complete snapshot. No I/O.

The condition Verified has the result. A damaged snapshot is not Ready until a later verification finds it whole.
"""

from __future__ import annotations

import dataclasses

from tidegate.api.snapshot_identity import snapshot_id, stored_id
from tidegate.api.stream_snapshot import SnapshotPhase, is_to_be_verified
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.names import number_of_verify_pod
from tidegate.pods.records.record import PodRecord
from tidegate.snapshots.actions import CountVerification, DeleteSnapshotPod, ForgetRefusal, SnapshotAction
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import messages, pods
from tidegate.snapshots.rules.status import human_size
from tidegate.snapshots.rules.taking import keep_final
from tidegate.snapshots.rules.verdict import SnapshotVerdict, Verification, forget_refusal, reason_of
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders, SnapshotReport, SnapshotState, VerifyOrder

_RESULTS = {"True": "whole", "False": "damaged", "Unknown": "unknown"}
_USELESS = frozenset({Reason.SNAPSHOT_DAMAGED, Reason.SNAPSHOT_GONE})
"""Reasons for which nothing can start from a snapshot."""


def read_back(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have a pod read it back, and say what came of it."""
    kept = keep_final(o, now)
    if kept is None or not is_to_be_verified(o.snapshot):
        return None
    # What the API server refused is to be remembered.
    kept = dataclasses.replace(kept, after=tuple(a for a in kept.after if not isinstance(a, ForgetRefusal)))
    pod = o.verifying
    if pod is None:
        return _begin(o, kept, now)
    if _is_known(o, pod) and not pod.terminating:
        # The status was written, and the operator ended before it deleted the pod.
        return dataclasses.replace(kept, after=(*kept.after, *forget_refusal(o), DeleteSnapshotPod(pod)))
    report = pods.pods_report(o, pod)
    if report is not None and pods.has_done_its_work(pod) and not pod.terminating:
        # If another number asks by now, that one's pod comes next: what was changed since may not have been read.
        return _end(o, kept, report, (*forget_refusal(o), DeleteSnapshotPod(pod)))
    at_work = pods.follow(o, pod, kept.phase, now)
    return _with_message(kept, at_work)


def remove_leftover(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Remove the pod of one that is not to be read back any more."""
    if o.verifying is None or o.verifying.terminating or is_to_be_verified(o.snapshot):
        return None
    kept = keep_final(o, now)
    if kept is None:
        return None
    return dataclasses.replace(kept, after=(*kept.after, *forget_refusal(o), DeleteSnapshotPod(o.verifying)))


def _is_known(o: SnapshotObservation, pod: PodRecord) -> bool:
    """Return whether the status has what came of the pod's number."""
    done, number = o.snapshot.status.verification, number_of_verify_pod(pod.name)
    return done is not None and number == done.nonce


def _begin(o: SnapshotObservation, kept: SnapshotVerdict, now: float) -> SnapshotVerdict:
    order = VerifyOrder(snapshot_id(o.snapshot.metadata), stored_id(o.snapshot))
    if pods.namespace_goes(o):
        return kept
    return _with_message(kept, pods.begin(o, SnapshotOrders(verify=(order,)), kept.phase, now))


def _with_message(kept: SnapshotVerdict, at_work: SnapshotVerdict) -> SnapshotVerdict:
    """Return what is kept, with what is done and said about reading it back."""
    return dataclasses.replace(
        kept,
        before=(*kept.before, *at_work.before),
        after=(*kept.after, *at_work.after),
        verification=Verification("Unknown", at_work.reason, at_work.message),
        wake_after=earliest(kept.wake_after, at_work.wake_after),
    )


def _end(
    o: SnapshotObservation, kept: SnapshotVerdict, report: SnapshotReport, remove: tuple[SnapshotAction, ...]
) -> SnapshotVerdict:
    whole = report.state is SnapshotState.VERIFIED
    reason = Reason.WHOLE if whole else reason_of(report, Reason.INTERNAL_ERROR)
    message = messages.of_report(report, reason) if reason is Reason.UNKNOWN else report.message.strip() or reason
    # A fault of ours says nothing of the snapshot.
    status = "True" if whole else "False" if report.reason in _USELESS else "Unknown"
    verification = Verification(status, reason, message, report)
    events = PublishEvent(
        Reason.SNAPSHOT_VERIFIED if whole else Reason.SNAPSHOT_NOT_VERIFIED, message, not whole, reason
    )
    done: tuple[SnapshotAction, ...] = (events, CountVerification(_RESULTS[status]), *remove)
    judged = _as_found(o, kept, verification)
    return dataclasses.replace(judged, after=(*judged.after, *done), verification=verification)


def _as_found(o: SnapshotObservation, kept: SnapshotVerdict, found: Verification) -> SnapshotVerdict:
    """Return whether it is Ready, by what was found; a fault of ours changes nothing about that."""
    if found.status == "False":
        return dataclasses.replace(
            kept,
            phase=SnapshotPhase.FAILED,
            health=Health.STALLED,
            reason=found.reason,
            message=found.message,
        )
    if found.status == "Unknown" or kept.phase is SnapshotPhase.READY:
        return kept
    status = o.snapshot.status
    batches = {query.name: query.batch_id for query in status.queries}
    message = messages.complete(batches, status.files, human_size(status.bytes))
    return dataclasses.replace(
        kept, phase=SnapshotPhase.READY, health=Health.READY, reason=Reason.COMPLETED, message=message
    )
