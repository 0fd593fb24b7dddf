"""Rules for a deleted StreamSnapshot: retain or delete its files, then release the finalizer. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tidegate.api.stream_snapshot import (
    ANNOTATION_RELEASE_HOLDERS,
    SnapshotPhase,
    goes_with_storage,
    import_holder,
    is_damaged,
    is_imported,
)
from tidegate.api.streaming_app import DeletionPolicy
from tidegate.engine.rules.actions import PublishEvent, RemoveFinalizer
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import PATIENCE, clocks_time_left, patience_left
from tidegate.engine.rules.table import earliest, first_verdict
from tidegate.snapshots.actions import CreateSnapshotPod, DeleteSnapshotPod, GiveOrders, SnapshotAction
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import messages, pods
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
from tidegate_spark.contract.protocol import SNAPSHOT_FINALIZER
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import ReleaseOrder, SnapshotOrders, SnapshotReport, SnapshotState

REMINDER = 30.0
"""Seconds between two orders to an agent whose report does not say whether it knows of the first."""
HELD_PAUSE = 60.0
"""Seconds until another pod asks whether the snapshot is still held."""
_DELETING = SnapshotPhase.DELETING


def leave_released_alone(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Leave alone what our finalizer is not on."""
    if SNAPSHOT_FINALIZER in o.snapshot.metadata.finalizers:
        return None
    return SnapshotVerdict(_DELETING, Health.RECONCILING, Reason.RELEASED, messages.NOTHING_LEFT, silent=True)


def stop_taking(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Remove the pod that takes it, or reads it back: what is disposed of must not go on growing.

    One that failed is not called otherwise meanwhile: that is all that says that it is damaged, if its driver found it.
    """
    pod = o.taking or o.verifying or o.exporting
    if pod is None:
        return None
    phase = SnapshotPhase.FAILED if o.snapshot.status.phase is SnapshotPhase.FAILED else _DELETING
    message = messages.pod_deleted(pod.name)
    after = put_away(o, pod)
    return SnapshotVerdict(phase, Health.RECONCILING, Reason.POD_STOPPING, message, after=after)


def release_import(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Say where an imported snapshot is that it is not needed here any more; that storage may be away for good."""
    if not is_imported(o.snapshot):
        return None
    pod, metadata = o.disposing, o.snapshot.metadata
    if not o.snapshot.status.snapshot_id or (pod is not None and pods.has_done_its_work(pod) and not pod.terminating):
        return _release(o)
    needed = wait_for_forks(o, now)
    if needed is not None:
        return needed
    left = patience_left(metadata, now)
    if not left or pods.namespace_goes(o):
        return _release(o, _still_held_event(o))
    orders = SnapshotOrders(release=(ReleaseOrder(o.snapshot.status.snapshot_id, import_holder(metadata)),))
    verdict = pods.begin(o, orders, _DELETING, now) if pod is None else pods.follow(o, pod, _DELETING, now)
    return dataclasses.replace(verdict, wake_after=earliest(verdict.wake_after, left))


def release_what_never_was(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Release what nobody was asked to take."""
    return None if o.snapshot.status.snapshot_id and o.snapshot.status.storage is not None else _release(o)


def keep_what_is_retained(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Release what is complete and keep the files; of what failed there are none."""
    status = o.snapshot.status
    final = status.ready_time is not None or status.phase is SnapshotPhase.FAILED
    return _release(o) if final and _is_retained(o) else None


def cancel(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have removed what was begun of one that is not complete, whatever is retained: nobody could use it.

    Nobody asked to wait for that, and the storage may be gone: if it is not done in time, the resource goes all the
    same, and reports what it leaves.
    """
    if not _is_retained(o):
        return None
    reported = [report.state for report in _reports(o) if report is not None]
    if SnapshotState.HELD in reported:
        return _release(o)  # it was completed meanwhile, and has a holder
    _, verdict = first_verdict(REMOVING_RULES, o, now)
    left = patience_left(o.snapshot.metadata, now) or _pods_patience(o, verdict, now)
    if verdict.silent:
        return verdict
    # After a time without an operator it is tried all the same.
    if left or any(isinstance(action, CreateSnapshotPod | GiveOrders) for action in verdict.after):
        return dataclasses.replace(verdict, wake_after=earliest(verdict.wake_after, left or None))
    return _release(o, _retained_event(o, messages.not_in_time(PATIENCE, verdict.message)))


def wait_for_forks(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Keep it for applications that are to start with it, until they have; only what is whole is of use to them.

    They start from what is kept for them, and nothing could start from one that is damaged, or gone.
    """
    status = o.snapshot.status
    ready = status.condition(Health.READY.value)
    begun = (
        status.phase is _DELETING
        and ready is not None
        and ready.reason not in (Reason.NEEDED_BY_FORK, Reason.POD_STOPPING)
    )
    damaged = is_damaged(o.snapshot) or report_of_damage(o, now) is not None
    if not o.forks or status.ready_time is None or begun or damaged:
        return None
    message = messages.needed_by(", ".join(o.forks))
    return SnapshotVerdict(_DELETING, Health.RECONCILING, Reason.NEEDED_BY_FORK, message)


def leave_with_its_storage(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Release what was to go with its application's storage, and leave the files to that.

    The purge has deleted them; or it was refused, and the storage is retained with all that is in it.
    """
    going = goes_with_storage(o.snapshot)
    if not going or o.snapshot.status.ready_time is None or o.app_unreadable or refers_to_its_app(o):
        return None
    return _release(o)


def judge_disposal(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Release what a driver disposed of; say who keeps it from doing so."""
    report = agents_report(o)
    if report is None:
        return None
    if report.state is SnapshotState.DISPOSED:
        return _release(o, _disposed_event())
    if report.state is not SnapshotState.HELD:
        return None
    # A person may have released holders since; the next report has the remaining ones.
    again = agent_takes_orders(o) and bool(_released(o)) and ordered_seconds_ago(o, now) >= REMINDER
    return _order(o, now) if again else dataclasses.replace(_held(o, report), wake_after=_next_check(o))


def judge_pod(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Release what the pod disposed of; follow one that is still at it."""
    pod = o.disposing
    if pod is None:
        return None
    report = pods.pods_report(o, pod)
    if report is None or not pods.has_done_its_work(pod) or pod.terminating:
        verdict = pods.follow(o, pod, _DELETING, now)
        return _with_way_out(o, verdict)
    if report.state is SnapshotState.DISPOSED:
        return _release(o, _disposed_event())
    left = pods.time_left_since_end(pod, HELD_PAUSE, now)
    again: tuple[SnapshotAction, ...] = () if left else (DeleteSnapshotPod(pod),)
    said = _held(o, report) if report.state is SnapshotState.HELD else _not_disposed(o, report)
    return dataclasses.replace(said, after=again, wake_after=left or None)


def order_from_agent(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have the running driver dispose of it."""
    return _order(o, now) if agent_takes_orders(o) else None


def begin_pod(o: SnapshotObservation, now: float) -> SnapshotVerdict | None:
    """Have a pod dispose of it if the application is gone or does not run."""
    if o.app_unreadable or (refers_to_its_app(o) and not is_at_rest(o)):
        return None
    if pods.namespace_goes(o):
        why = messages.namespace_terminating(o.snapshot.metadata.namespace)
        return _release(o, _retained_event(o, why))
    return _with_way_out(o, pods.begin(o, _orders(o), _DELETING, now))


def wait_for_driver(o: SnapshotObservation, now: float) -> SnapshotVerdict:
    """Wait: the application starts or stops."""
    name = o.snapshot.app_key[1]
    message = _way_out(o, messages.deletion_waits(name))
    return SnapshotVerdict(_DELETING, Health.RECONCILING, Reason.APP_NOT_RUNNING, message)


REMOVING_RULES: tuple[Callable[[SnapshotObservation, float], SnapshotVerdict | None], ...] = (
    judge_disposal,
    judge_pod,
    order_from_agent,
    begin_pod,
    wait_for_driver,
)
"""Who removes the files, and how far that is. The last one always decides."""


def _pods_patience(o: SnapshotObservation, verdict: SnapshotVerdict, now: float) -> float:
    """Return for how many seconds a pod that was begun late is waited for, as long as nothing is wrong with it."""
    pod = o.disposing
    if pod is None or pod.terminating or verdict.health is Health.STALLED:
        return 0.0
    # Deleting may take long.
    return PATIENCE if pod.running else clocks_time_left(pod.created_at, PATIENCE, now)


def _reports(o: SnapshotObservation) -> tuple[SnapshotReport | None, ...]:
    return agents_report(o), pods.pods_report(o, o.disposing) if o.disposing is not None else None


def _is_retained(o: SnapshotObservation) -> bool:
    return o.snapshot.spec.deletion_policy is DeletionPolicy.RETAIN


def _way_out(o: SnapshotObservation, message: str) -> str:
    """Return a text about a deletion that waits with how it ends."""
    return messages.with_patience(message, PATIENCE) if _is_retained(o) else messages.with_retention(message)


def _order(o: SnapshotObservation, now: float) -> SnapshotVerdict:
    assert o.driver is not None
    since, report = ordered_seconds_ago(o, now), agents_report(o)
    if o.memory.not_taken and since < NOT_TAKEN_PAUSE:
        message = _way_out(o, messages.deletion_order_refused(o.driver.name, o.memory.not_taken))
        return SnapshotVerdict(
            _DELETING, Health.STALLED, Reason.ORDER_REFUSED, message, wake_after=NOT_TAKEN_PAUSE - since
        )
    waits = report is not None and report.state is SnapshotState.WAITING
    pause = REMINDER if waits else ORDER_PAUSE
    reported = since < pause and not o.memory.not_taken
    health, message = Health.RECONCILING, messages.deleting(o.driver.name)
    if waits and reported and report is not None and report.reason:
        health, message = Health.STALLED, _not_disposed(o, report).message
    orders = GiveOrders(o.driver, _orders(o))
    return SnapshotVerdict(
        _DELETING,
        health,
        Reason.DISPOSING,
        message,
        after=() if reported else (orders,),
        wake_after=pause - since if reported else ORDER_PAUSE,
    )


def _orders(o: SnapshotObservation) -> SnapshotOrders:
    name = o.snapshot.status.snapshot_id
    return SnapshotOrders(dispose=(name,), release=tuple(ReleaseOrder(name, holder) for holder in _released(o)))


def _released(o: SnapshotObservation) -> tuple[str, ...]:
    """Return who is not to be waited for, as somebody says who knows."""
    named = o.snapshot.metadata.annotations.get(ANNOTATION_RELEASE_HOLDERS, "")
    return tuple(sorted({holder.strip() for holder in named.split(",")} - {""}))


def _next_check(o: SnapshotObservation) -> float | None:
    return REMINDER if _released(o) else None


def _held(o: SnapshotObservation, report: SnapshotReport) -> SnapshotVerdict:
    metadata = o.snapshot.metadata
    held = messages.held(report.message.strip(), metadata.name, metadata.namespace, ANNOTATION_RELEASE_HOLDERS)
    message = _way_out(o, held)
    return SnapshotVerdict(_DELETING, Health.STALLED, Reason.HELD, message)


def _not_disposed(o: SnapshotObservation, report: SnapshotReport) -> SnapshotVerdict:
    reason = reason_of(report, Reason.NOT_DISPOSED)
    message = _way_out(o, messages.not_deleted(messages.of_report(report, reason)))
    return SnapshotVerdict(_DELETING, Health.STALLED, reason, message)


def _with_way_out(o: SnapshotObservation, verdict: SnapshotVerdict) -> SnapshotVerdict:
    if verdict.health is not Health.STALLED:
        return verdict
    return dataclasses.replace(verdict, message=_way_out(o, verdict.message))


def _release(o: SnapshotObservation, *events: PublishEvent) -> SnapshotVerdict:
    after: tuple[SnapshotAction, ...] = (*put_away(o, o.disposing), *events, RemoveFinalizer())
    message = messages.NOTHING_LEFT
    return SnapshotVerdict(_DELETING, Health.RECONCILING, Reason.RELEASED, message, after=after, silent=True)


def _still_held_event(o: SnapshotObservation) -> PublishEvent:
    status, holder = o.snapshot.status, import_holder(o.snapshot.metadata)
    place = status.storage.uri if status.storage is not None else ""
    message = messages.still_held(status.snapshot_id, place, holder, ANNOTATION_RELEASE_HOLDERS)
    return PublishEvent(Reason.ORIGIN_STILL_HELD, message, True, "held")


def _disposed_event() -> PublishEvent:
    return PublishEvent(Reason.SNAPSHOT_DISPOSED, messages.FILES_DELETED, False, "disposed")


def _retained_event(o: SnapshotObservation, why: str) -> PublishEvent:
    place = o.snapshot.status.storage.uri if o.snapshot.status.storage is not None else ""
    message = messages.files_left(o.snapshot.status.snapshot_id, place, why)
    return PublishEvent(Reason.SNAPSHOT_RETAINED, message, True, "kept")
