"""Releases the snapshot that a deleted application held to start from. No I/O.

The driver holds it in the origin's catalog while it copies. The origin may be another cluster's, where nobody can see
that the holder is gone, so it is released before the application is.
"""

from __future__ import annotations

from tidegate.api.streaming_app import Phase, StartedFrom
from tidegate.api.values.errors import SpecError
from tidegate.app.actions import Action, CreateOriginRelease, DeleteOriginRelease
from tidegate.app.builders.release_pod import build_release_pod
from tidegate.app.observation import Observation, lacks_access
from tidegate.app.rules.deleted import deletion_messages
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import EnsureAccess, PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import PATIENCE, patience_left, refused_for
from tidegate.pods.builders.driver_config import fork_holder
from tidegate.pods.records.faults import helper_problem
from tidegate.pods.records.names import release_pod_name
from tidegate_spark.contract.reasons import Reason


def release_origin(o: Observation, now: float) -> Verdict | None:
    """Say in the origin's catalog that its snapshot is not needed; that storage may be away, but not for ever."""
    if origin_held(o) is None:
        return None
    left = patience_left(o.app.metadata, now)
    if not left or _namespace_goes(o):
        return None
    pod = o.releasing
    if pod is None:
        return _begin(o, now, left)
    if pod.phase == "Failed" and not pod.terminating:
        return _verdict(deletion_messages.ORIGIN_POD_REPLACED, left, after=(DeleteOriginRelease(pod),))
    problem = helper_problem(pod)
    if problem is not None:
        message = deletion_messages.origin_retried(problem.message, PATIENCE)
        return Verdict(Phase.DELETING, Health.RECONCILING, Reason.ORIGIN_RELEASING, message, wake_after=left)
    return _verdict(deletion_messages.origin_releasing(pod.name), left)


def origin_held(o: Observation) -> StartedFrom | None:
    """Return the snapshot that the application may hold, None if it does not, or has let go."""
    began = o.app.status.start_from
    if began is None or began.has_started or o.app.status.epoch == 0:
        return None
    if began.app_uid == o.app.metadata.uid:
        return None  # its own: what holds it is in the place that is to be kept or removed as a whole
    return None if o.releasing is not None and o.releasing.phase == "Succeeded" else began


def hold_event(o: Observation) -> tuple[PublishEvent, ...]:
    """Return the event that the application is deleted and its hold on the snapshot stays."""
    began = origin_held(o)
    if began is None:
        return ()
    holder = fork_holder(o.app)
    message = deletion_messages.origin_still_held(began.id, began.uri, holder)
    return (PublishEvent(Reason.ORIGIN_STILL_HELD, message, True, "held"),)


def remove_release_pod(o: Observation) -> tuple[Action, ...]:
    """Return what removes the pod, if it is there."""
    return () if o.releasing is None or o.releasing.terminating else (DeleteOriginRelease(o.releasing),)


def _begin(o: Observation, now: float, left: float) -> Verdict:
    name, refusal = release_pod_name(o.app.metadata.name), o.memory.refusal
    if refusal is not None and refusal.pod_name == name:
        pause = refused_for(refusal.at, refusal.attempts, now)
        if pause:
            return _verdict(refusal.message, min(pause, left))
    access: tuple[Action, ...] = (EnsureAccess(),) if lacks_access(o) else ()
    try:
        create = CreateOriginRelease(build_release_pod(o.app, o.platform))
    except SpecError as error:
        return _verdict(deletion_messages.origin_pod_not_built(error), left)
    message = deletion_messages.origin_releasing(name)
    return _verdict(message, left, before=access, after=(create,))


def _verdict(message: str, left: float, *, before: tuple[Action, ...] = (), after: tuple[Action, ...] = ()) -> Verdict:
    return Verdict(
        Phase.DELETING,
        Health.RECONCILING,
        Reason.ORIGIN_RELEASING,
        message,
        before=before,
        after=after,
        wake_after=left,
    )


def _namespace_goes(o: Observation) -> bool:
    refusal = o.memory.refusal
    return refusal is not None and refusal.reason == Reason.NAMESPACE_TERMINATING
