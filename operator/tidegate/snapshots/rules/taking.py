"""Rules for a snapshot that is to be taken: of what, by whom, how far it is. No I/O.

The order is finalizer, intent in status, order to the driver or pod. The next observation continues what was
interrupted; a repeated order is one order.
"""

from __future__ import annotations

import dataclasses
from typing import assert_never

from tidegate.api.lost_status import has_launched
from tidegate.api.snapshot_identity import snapshot_id, stored_id
from tidegate.api.stream_snapshot import (
    SnapshotPhase,
    SnapshotVersion,
    import_holder,
    is_at_deletion,
    is_imported,
    is_ready,
    is_scheduled,
    owner_uid,
)
from tidegate.engine.rules.actions import AddFinalizer
from tidegate.engine.rules.health import Health
from tidegate.snapshots.actions import CountTakenByPod, GiveOrders, SnapshotAction
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import messages, pods
from tidegate.snapshots.rules.retention import expires_in, renew_stamp
from tidegate.snapshots.rules.status import human_size
from tidegate.snapshots.rules.verdict import (
    NOT_TAKEN_PAUSE,
    ORDER_PAUSE,
    SnapshotVerdict,
    agent_takes_orders,
    agents_report,
    is_at_rest,
    ordered_seconds_ago,
    put_away,
    reason_of,
    refers_to_its_app,
    report_of_damage,
)
from tidegate.snapshots.rules.version import image_taken, version_taken
from tidegate_spark.contract.protocol import SNAPSHOT_FINALIZER
from tidegate_spark.contract.reasons import Reason, reason_from
from tidegate_spark.contract.snapshot_protocol import (
    AdoptOrder,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReport,
    SnapshotState,
)

FOR_A_PERSON = frozenset({Reason.STORAGE_UNAVAILABLE, Reason.CATALOG_LOST, Reason.NEWER_FORMAT, Reason.CLAIM_DAMAGED})
"""Reasons to wait that do not pass without somebody."""
_ENDED = frozenset({SnapshotState.READY, SnapshotState.FAILED, SnapshotState.DISPOSED})


def keep_final(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Keep what is complete or given up as it is, and put its pod away."""
    status = o.snapshot.status
    ready = status.condition(Health.READY.value)
    if not o.snapshot.is_final or status.phase is None or ready is None:
        return None
    health = Health.READY if status.phase is SnapshotPhase.READY else Health.STALLED
    stamp = renew_stamp(o)
    return SnapshotVerdict(
        status.phase,
        health,
        reason_from(ready.reason),
        ready.message,
        after=(*put_away(o, o.taking or o.disposing), *stamp),
        # With new limits it may have to be deleted: reconcile again.
        wake_after=0.0 if stamp else expires_in(o, now),
    )


def find_damage(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Believe the driver that a complete snapshot lacks files: nothing can start from it."""
    report = report_of_damage(o, now)
    if report is None or not is_ready(o.snapshot):
        return None
    message = messages.of_report(report, Reason.SNAPSHOT_DAMAGED)
    after = put_away(o, o.taking or o.disposing)
    return SnapshotVerdict(SnapshotPhase.FAILED, Health.STALLED, Reason.SNAPSHOT_DAMAGED, message, after=after)


def adopt_import(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have a pod look whether an imported snapshot is whole, and hold it from then on."""
    if not is_imported(o.snapshot):
        return None
    if o.taking is not None and _was_ordered(o):
        return judge_pod(o, now)
    metadata = o.snapshot.metadata
    order = AdoptOrder(snapshot_id(metadata), stored_id(o.snapshot), import_holder(metadata))
    verdict = pods.begin(o, SnapshotOrders(adopt=(order,)), SnapshotPhase.PENDING, now)
    return dataclasses.replace(verdict, before=(*_finalizer(o), *verdict.before), begins=bool(verdict.after))


def refuse_another_app(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Give up if the application is gone that it was begun of: one of the same name has another state.

    What was begun is removed before it is called Failed: nobody would know of it afterwards.
    """
    if not owner_uid(o.snapshot) or o.app_unreadable or refers_to_its_app(o):
        return None
    name = o.snapshot.app_key[1]
    replaced = messages.app_replaced(name, recreated=o.app is not None)
    removing = _remove_what_was_begun(o, now)
    if removing is not None:
        message = messages.app_replaced_deleting(replaced, removing.message)
        return dataclasses.replace(removing, reason=Reason.APP_REPLACED, message=message)
    storage = o.snapshot.status.storage if pods.namespace_goes(o) else None
    after = put_away(o, o.taking or o.disposing)
    return SnapshotVerdict(
        SnapshotPhase.FAILED,
        Health.STALLED,
        Reason.APP_REPLACED,
        messages.app_replaced_failed(replaced, storage.uri if storage is not None else ""),
        after=after,
    )


def _remove_what_was_begun(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have a pod remove it, and say how far that is; None if nothing is left, or nothing can be done."""
    if not _was_ordered(o) or o.snapshot.status.storage is None or pods.namespace_goes(o):
        return None
    phase, pod = _phase(o), o.disposing
    if o.taking is not None:
        message = messages.pod_deleted(o.taking.name)
        return SnapshotVerdict(phase, Health.RECONCILING, Reason.APP_REPLACED, message, after=put_away(o, o.taking))
    if pod is None:
        return pods.begin(o, SnapshotOrders(dispose=(snapshot_id(o.snapshot.metadata),)), phase, now)
    report = pods.pods_report(o, pod)
    # A held snapshot was completed, and stays with its holders.
    ended = report is not None and report.state in (SnapshotState.DISPOSED, SnapshotState.HELD)
    if ended and pods.has_done_its_work(pod) and not pod.terminating:
        return None
    return pods.follow(o, pod, phase, now, messages.WORK_DELETE_COPIED)


def wait_for_app(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Wait for an application that has state."""
    name = o.snapshot.app_key[1]
    if o.app_unreadable:
        return _waiting(o, Reason.APP_UNREADABLE, messages.app_unreadable(name, o.snapshot.metadata.namespace))
    if o.app is None:
        message = messages.app_not_found(name, o.snapshot.metadata.namespace)
        return _waiting(o, Reason.APP_NOT_FOUND, message)
    if o.app.metadata.deletion_timestamp is not None and not is_at_deletion(o.snapshot):
        message = messages.app_deleting(name)
        return dataclasses.replace(_waiting(o, Reason.APP_DELETING, message), after=put_away(o, o.taking))
    if not has_launched(o.app.status):
        return _waiting(o, Reason.APP_NOT_STARTED, messages.app_not_started(name))
    return None


def judge_report(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Believe the driver's agent about an order that it knows."""
    report = agents_report(o)
    if report is None or not _was_ordered(o):
        return None
    who = messages.driver(o.driver.name if o.driver is not None else "")
    return _judge(o, report, who)


def judge_pod(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Follow the pod that was begun, also if the application runs again meanwhile."""
    pod = o.taking
    if pod is None or not _was_ordered(o):
        return None
    report = pods.pods_report(o, pod)
    if report is not None and report.state in _ENDED and pods.has_done_its_work(pod):
        verdict = _judge(o, report, messages.pod(pod.name))
        return dataclasses.replace(verdict, after=(*_count(o, report, now), *verdict.after))
    return pods.follow(o, pod, SnapshotPhase.PENDING if is_imported(o.snapshot) else SnapshotPhase.COPYING, now)


def order_from_agent(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have the running driver take it."""
    if o.driver is None or not agent_takes_orders(o):
        return None
    since = ordered_seconds_ago(o, now)
    if o.memory.not_taken and since < NOT_TAKEN_PAUSE:
        message = messages.order_refused(o.driver.name, o.memory.not_taken)
        return _waiting(o, Reason.ORDER_REFUSED, message, health=Health.STALLED, wake_after=NOT_TAKEN_PAUSE - since)
    message = messages.ordered(o.driver.name)
    if since < ORDER_PAUSE and not o.memory.not_taken:
        return _waiting(o, Reason.ORDERED, message, wake_after=ORDER_PAUSE - since)
    return SnapshotVerdict(
        _phase(o),
        Health.RECONCILING,
        Reason.ORDERED,
        message,
        before=_finalizer(o),
        after=(GiveOrders(o.driver, _orders(o)),),
        begins=True,
        wake_after=ORDER_PAUSE,
    )


def begin_pod(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have a pod take it if the application does not run."""
    if not is_at_rest(o):
        return None
    verdict = pods.begin(o, _orders(o), _phase(o), now)
    return dataclasses.replace(verdict, before=(*_finalizer(o), *verdict.before), begins=bool(verdict.after))


def wait_for_driver(o: SnapshotObservation, now: float) -> SnapshotVerdict:
    """Wait: the application starts, stops, or cannot be asked."""
    name = o.snapshot.app_key[1]
    message = messages.app_not_running(name)
    return _waiting(o, Reason.APP_NOT_RUNNING, message)


_REASONS = {SnapshotState.WAITING: Reason.WAITING, SnapshotState.HELD: Reason.HELD}
"""Of a report that gives none; one of a failure always does."""


def _judge(o: SnapshotObservation, report: SnapshotReport, who: str) -> SnapshotVerdict:
    reason = reason_of(report, _REASONS.get(report.state, Reason.INTERNAL_ERROR))
    why = messages.of_report(report, reason)
    match report.state:
        case SnapshotState.READY:
            batches = {name: pin.batch for name, pin in report.queries.items()}
            return SnapshotVerdict(
                SnapshotPhase.READY,
                Health.READY,
                Reason.COMPLETED,
                messages.complete(batches, report.files, human_size(report.bytes)),
                report,
                after=put_away(o, o.taking),
            )
        case (
            SnapshotState.FAILED
            | SnapshotState.DISPOSED
            | SnapshotState.RELEASED
            | SnapshotState.VERIFIED
            | SnapshotState.EXPORTED
        ):
            return SnapshotVerdict(
                SnapshotPhase.FAILED, Health.STALLED, reason, why, report, after=put_away(o, o.taking)
            )
        case SnapshotState.COPYING:
            message = messages.copying(who, report.files, report.of_files)
            return SnapshotVerdict(SnapshotPhase.COPYING, Health.RECONCILING, Reason.COPYING, message, report)
        case SnapshotState.UNKNOWN:
            return SnapshotVerdict(_phase(o), Health.STALLED, reason, messages.waiting(who, why), report)
        case SnapshotState.WAITING | SnapshotState.HELD:
            health = Health.STALLED if report.reason in FOR_A_PERSON else Health.RECONCILING
            return SnapshotVerdict(_phase(o), health, reason, messages.waiting(who, why), report)
        case _:
            assert_never(report.state)


def _count(o: SnapshotObservation, report: SnapshotReport, now: float) -> tuple[SnapshotAction, ...]:
    """Return what counts a snapshot that a pod took; an imported one was taken elsewhere."""
    began = o.snapshot.status.start_time
    if report.state is not SnapshotState.READY or began is None or is_imported(o.snapshot):
        return ()
    seconds = max(0.0, now - began.timestamp())
    return (CountTakenByPod(seconds, copied=report.new_bytes, shared=report.bytes - report.new_bytes),)


def _waiting(
    o: SnapshotObservation,
    reason: Reason,
    message: str,
    *,
    health: Health = Health.RECONCILING,
    wake_after: float | None = None,
) -> SnapshotVerdict:
    return SnapshotVerdict(_phase(o), health, reason, message, wake_after=wake_after)


def _phase(o: SnapshotObservation) -> SnapshotPhase:
    """Return Copying once something was copied, Pending before: a pause in between is none of a beginning."""
    copied = o.snapshot.status.phase is SnapshotPhase.COPYING
    return SnapshotPhase.COPYING if copied else SnapshotPhase.PENDING


def _was_ordered(o: SnapshotObservation) -> bool:
    # A report without the record on the resource does not count: it may be of another resource of the same name.
    return SNAPSHOT_FINALIZER in o.snapshot.metadata.finalizers and bool(o.snapshot.status.snapshot_id)


def _orders(o: SnapshotObservation) -> SnapshotOrders:
    version = version_taken(o) or SnapshotVersion(spec_hash="")
    order = SnapshotOrder(
        snapshot_id(o.snapshot.metadata),
        manual=not is_scheduled(o.snapshot),
        image=image_taken(o),
        spec_hash=version.spec_hash,
        spec=version.spec,
    )
    return SnapshotOrders(take=(order,))


def _finalizer(o: SnapshotObservation) -> tuple[SnapshotAction, ...]:
    return () if SNAPSHOT_FINALIZER in o.snapshot.metadata.finalizers else (AddFinalizer(),)
