"""Rules for a deleted application: its pods, storage, Secrets and finalizer. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from tidegate.api.lost_status import has_launched, may_have_launched
from tidegate.api.streaming_app import DeletionPolicy, Phase
from tidegate.api.values.errors import SpecError
from tidegate.app.actions import (
    Action,
    ConfirmDriverGone,
    CreatePurge,
    DeleteDriver,
    DeleteExecutor,
    DeleteLaunchSecrets,
    DeletePurge,
    DeleteRehearsal,
    DeleteRepartition,
    Plan,
)
from tidegate.app.builders.purge import build_purge_pod
from tidegate.app.observation import Observation, lacks_access
from tidegate.app.rules import messages
from tidegate.app.rules.deleted import deletion_messages
from tidegate.app.rules.deleted.last_snapshot import mark_purged_snapshots, missing_event
from tidegate.app.rules.deleted.origin_release import hold_event, remove_release_pod
from tidegate.app.rules.housekeeping import check_labels_in, restore_labels
from tidegate.app.rules.pods import disowned
from tidegate.app.rules.pods.overdue import OVERDUE, wait_for_end
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.engine.rules.health import Health, health_without_start
from tidegate.engine.rules.pauses import PATIENCE, hour_of, minutes_of, next_hour_in, patience_left, refused_for
from tidegate.engine.rules.table import earliest
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.records.faults import helper_problem, read_termination, why_still_there
from tidegate.pods.records.names import driver_pod_name, purge_pod_name
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import FINALIZER
from tidegate_spark.contract.reasons import Reason

_AT_WORK = frozenset({Reason.STORAGE_PURGING, Reason.HELD, Reason.POD_NOT_GONE})
"""Reasons of a purge that gets on, or has found something, or of which a pod may still run."""


def leave_released_alone(o: Observation, now: float) -> Verdict | None:
    """Leave alone what our finalizer is not on: others' finalizers are none of our business."""
    if FINALIZER in o.app.metadata.finalizers:
        return None
    return Verdict(Phase.DELETING, Health.RECONCILING, Reason.RELEASED, deletion_messages.NOTHING_LEFT, silent=True)


def stop_deleted_driver(o: Observation, now: float) -> Verdict | None:
    """Let the driver stop its queries at a batch boundary, within its grace period."""
    driver = o.driver
    if driver is None:
        return None
    overdue_at = driver.delete_by + OVERDUE
    if driver.terminating and now >= overdue_at:
        return Verdict(
            Phase.DELETING,
            Health.STALLED,
            Reason.DRIVER_NOT_GONE,
            why_still_there(driver),
        )
    return Verdict(
        Phase.DELETING,
        Health.RECONCILING,
        Reason.DRIVER_STOPPING,
        messages.stopping(driver.name),
        after=() if driver.terminating else (DeleteDriver(driver),),
        wake_after=overdue_at - now if driver.terminating else None,
    )


def remove_executors(o: Observation, now: float) -> Verdict | None:
    """Remove the executors: nothing may write any more when the storage is treated.

    Not before their driver was looked for: one that lost its labels while no operator ran is not known, and cannot end
    its batch without them. Those of a pod that people are to remove stay as long as it does.
    """
    if wait_for_disowned_driver(o, now) is not None:
        return None
    stopping = (Reason.EXECUTORS_STOPPING, deletion_messages.EXECUTORS_DELETED)
    verdict = _remove(o.executors, DeleteExecutor, stopping, now)
    if verdict is None or not verdict.after:
        return verdict
    return dataclasses.replace(verdict, before=(ConfirmDriverGone(driver_pod_name(o.app.metadata.name)),))


def remove_rehearsals(o: Observation, now: float) -> Verdict | None:
    """Remove the pod of a rehearsal: what it writes is within the storage that is to be treated."""
    details = (Reason.REHEARSAL_STOPPING, deletion_messages.REHEARSAL_STOPPING)
    return _remove(o.rehearsals, DeleteRehearsal, details, now)


def remove_repartitions(o: Observation, now: float) -> Verdict | None:
    """Remove the pod that repartitions the state, likewise."""
    details = (Reason.REPARTITION_STOPPING, deletion_messages.REPARTITION_STOPPING)
    return _remove(o.repartitions, DeleteRepartition, details, now)


def _remove(
    pods: Sequence[PodRecord], delete: Callable[[PodRecord], Action], words: tuple[Reason, str], now: float
) -> Verdict | None:
    """Remove pods and wait until they are gone; ``words`` are a reason and a message."""
    if not pods:
        return None
    overdue = wait_for_end(pods, Phase.DELETING, now)
    if isinstance(overdue, Verdict):
        return overdue
    after = tuple(delete(pod) for pod in pods if not pod.terminating)
    return Verdict(Phase.DELETING, Health.RECONCILING, *words, after=after, wake_after=overdue)


def wait_for_disowned_driver(o: Observation, now: float) -> Verdict | None:
    """Wait for a pod that runs the program and is nobody's any more: people remove it, and nobody writes then."""
    return disowned.wait_for_disowned_driver(o, Phase.DELETING, now)


def purge_storage(o: Observation, now: float) -> Verdict | None:
    """Empty the storage if ``deletionPolicy`` says so; the resource stays until it is empty.

    Where the status was lost nobody knows whether there is anything, or whether a pod could ever reach it. So it is
    tried for a while only.
    """
    verdict = _purge(o, now) if _is_to_be_emptied(o) else None
    if verdict is None or verdict.reason in _AT_WORK or has_launched(o.app.status):
        return verdict
    left = patience_left(o.app.metadata, now)
    return dataclasses.replace(verdict, wake_after=earliest(left, verdict.wake_after)) if left else None


def _is_to_be_emptied(o: Observation) -> bool:
    return o.app.spec.storage.deletion_policy is DeletionPolicy.DELETE and may_have_launched(o.app)


def _purge(o: Observation, now: float) -> Verdict | None:
    purge = o.purge
    if purge is None:
        return None if _namespace_goes(o) else _begin_purge(o, now)
    if purge.phase == "Succeeded" and not purge.terminating:
        return None
    # One that was made before somebody fixed the spec would go on with what was wrong.
    if purge.terminating or purge.phase == "Failed" or purge.spec_hash != o.spec_hash:
        return _replace_purge(purge, now)
    problem = helper_problem(purge)
    if problem is not None:
        health = health_without_start(problem.reason)
        return Verdict(Phase.DELETING, health, problem.reason, deletion_messages.purge_waits(problem.message))
    return _purging(purge)


def wait_for_purge(o: Observation, now: float) -> Verdict | None:
    """Wait for a purge that is under way: cut off, it leaves snapshots that are Ready without all of their files."""
    purge = o.purge
    if purge is None or not purge.running or purge.terminating or helper_problem(purge) is not None:
        return None
    return _purging(purge)


def _purging(purge: PodRecord) -> Verdict:
    return Verdict(Phase.DELETING, Health.RECONCILING, Reason.STORAGE_PURGING, deletion_messages.purging(purge.name))


def _replace_purge(purge: PodRecord, now: float) -> Verdict:
    overdue = wait_for_end((purge,), Phase.DELETING, now)
    if isinstance(overdue, Verdict):
        return overdue
    return Verdict(
        Phase.DELETING,
        Health.RECONCILING,
        Reason.STORAGE_PURGING,
        deletion_messages.PURGE_REPLACED,
        after=() if purge.terminating else (DeletePurge(purge),),
        wake_after=overdue,
    )


def release(o: Observation, now: float) -> Verdict:
    """Remove the rest: nothing runs any more, and the storage was treated as asked."""
    if o.purge is not None and o.purge.phase == "Succeeded":
        return _release(o, _purge_event(o.purge))
    if _namespace_goes(o):
        why = deletion_messages.namespace_terminating(o.app.metadata.namespace)
        return _release(o, _retained(app_storage(o.app).uri, why))
    if _is_to_be_emptied(o):
        why = deletion_messages.purge_given_up(purge_pod_name(o.app.metadata.name), PATIENCE)
        return _release(o, _retained(app_storage(o.app).uri, why))
    return _release(o)


def release_unreadable(o: Observation, problem: str, now: float) -> Plan:
    """Stop what runs of a deleted application that cannot be read, in the usual order, and let it go.

    Nobody knows where its storage is and whether it was to go, so that is kept. No status is written: a resource that
    breaks its own schema may take none.

    Args:
        o: what surrounds it.
        problem: why it cannot be read.
        now: seconds since the epoch.
    """
    for rule in _RULES_OF_UNREADABLE:
        verdict = rule(o, now)
        if verdict is not None:
            # What no watch reports is read live: one that has gone would be waited for without end.
            after: tuple[Action, ...] = (*restore_labels(o), *verdict.before, *verdict.after)
            wake_after = earliest(verdict.wake_after, check_labels_in(o))
            if verdict.health is Health.STALLED:  # there is no condition that would say it
                own = now + minutes_of(o.app.metadata.uid)
                occasion = f"deleted/{hour_of(own)}"  # what the message has of the API server may change
                after = (*after, PublishEvent(verdict.reason, verdict.message, True, occasion, any_message=True))
                wake_after = earliest(wake_after, next_hour_in(own))
            return Plan(rule.__name__, verdict.reason, verdict.message, after, wake_after)
    events = _purge_event(o.purge) if o.purge is not None and o.purge.phase == "Succeeded" else None
    verdict = _release(o, events or _retained("", deletion_messages.unreadable(problem)))
    return Plan("release_unreadable", verdict.reason, verdict.message, verdict.after)


_RULES_OF_UNREADABLE = (
    leave_released_alone,
    stop_deleted_driver,
    remove_executors,
    remove_rehearsals,
    remove_repartitions,
    wait_for_disowned_driver,
    wait_for_purge,
    mark_purged_snapshots,
)
"""Those of a deleted application that need nothing but its metadata, in the same order."""


def _release(o: Observation, *events: PublishEvent) -> Verdict:
    actions: tuple[Action, ...] = (*_confirm(o), *_delete_secrets(o))
    if o.purge is not None and not o.purge.terminating:
        actions = (*actions, DeletePurge(o.purge))
    actions = (*actions, *remove_release_pod(o), *hold_event(o), *missing_event(o), *events)
    return Verdict(
        Phase.DELETING,
        Health.RECONCILING,
        Reason.RELEASED,
        deletion_messages.NOTHING_LEFT,
        after=(*actions, RemoveFinalizer()),
        silent=True,
    )


def _purge_event(purge: PodRecord) -> PublishEvent:
    # Exit code 0 is also that of a purge that refused: the storage is another application's.
    termination = read_termination(purge.ended)
    if termination is not None and termination.reason is Reason.COMPLETED:
        return PublishEvent(Reason.STORAGE_PURGED, deletion_messages.STORAGE_PURGED, False, "purged")
    why = termination.message if termination is not None else deletion_messages.purge_unconfirmed(purge.name)
    return PublishEvent(Reason.STORAGE_RETAINED, deletion_messages.purge_refused(why), True, "kept")


def _retained(uri: str, why: str) -> PublishEvent:
    return PublishEvent(Reason.STORAGE_RETAINED, deletion_messages.storage_retained(uri, why), True, "kept")


def _namespace_goes(o: Observation) -> bool:
    refusal = o.memory.refusal
    name = purge_pod_name(o.app.metadata.name)
    return refusal is not None and (refusal.pod_name, refusal.reason) == (name, Reason.NAMESPACE_TERMINATING)


def _confirm(o: Observation) -> tuple[Action, ...]:
    # A driver that the cache does not show, because a watch is late, would go on writing what is treated as finished.
    return (ConfirmDriverGone(driver_pod_name(o.app.metadata.name)),) if may_have_launched(o.app) else ()


def _delete_secrets(o: Observation) -> tuple[Action, ...]:
    # The garbage collector takes them as well, unless somebody deletes with --cascade=orphan.
    return (DeleteLaunchSecrets(o.app.status.epoch),) if o.app.status.epoch else ()


def _begin_purge(o: Observation, now: float) -> Verdict:
    name = purge_pod_name(o.app.metadata.name)
    refusal = o.memory.refusal
    # Somebody may have removed the ServiceAccount, without which the API server takes no pod of ours.
    access: tuple[Action, ...] = (EnsureAccess(),) if lacks_access(o) else ()
    before = (*_confirm(o), *access)
    if refusal is not None and refusal.pod_name == name:
        left = refused_for(refusal.at, refusal.attempts, now)
        if left:
            message = deletion_messages.purge_waits(refusal.message)
            return Verdict(Phase.DELETING, Health.STALLED, refusal.reason, message, wake_after=left)
    try:
        create = CreatePurge(build_purge_pod(o.app, o.platform))
    except SpecError as error:
        return Verdict(Phase.DELETING, Health.STALLED, Reason.INVALID_SPEC, deletion_messages.purge_waits(error))
    message = deletion_messages.purging(name)
    return Verdict(Phase.DELETING, Health.RECONCILING, Reason.STORAGE_PURGING, message, before=before, after=(create,))
