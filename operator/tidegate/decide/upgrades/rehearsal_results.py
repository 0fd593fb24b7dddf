"""What the pod of a rehearsal says of the version, or that it will not say anything any more. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.decide.fault_messages import reported, with_remedy
from tidegate.decide.faults import (
    KILLED_BY_MEMORY,
    SIGKILL,
    is_named,
    lost_from_sight,
    name_end,
    name_reported,
    name_start_problem,
    read_termination,
)
from tidegate.decide.upgrades import messages
from tidegate.model.streaming_app import RehearsalSpec, RehearsalStatus, UpgradeStatus
from tidegate.observe.observation import Observation
from tidegate.observe.pods import PodRecord
from tidegate.resources.names import rehearsal_pod_name
from tidegate.resources.rehearsal_pod import longest_seconds
from tidegate_spark.protocol import EXIT_STOPPED, Fault, Termination
from tidegate_spark.reasons import Reason
from tidegate_spark.rehearsal_protocol import RehearsalResult

_DEADLINE = "DeadlineExceeded"
"""The kubelet's word for a pod that was ended because of its activeDeadlineSeconds."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rehearsal came to."""

    result: RehearsalResult
    what: Reason
    message: str
    batches: Mapping[str, int] = field(default_factory=dict)


def find_pod(o: Observation, upgrade: UpgradeStatus) -> PodRecord | None:
    """Return the pod in which this upgrade's version is rehearsed, None if it is not there."""
    name = rehearsal_pod_name(o.app.metadata.name, upgrade.number)
    return next((pod for pod in o.rehearsals if pod.name == name and _is_of(pod, o, upgrade)), None)


def has_ended(pod: PodRecord) -> bool:
    """Return whether its process has ended, or will never begin."""
    return pod.finished


def result_of(
    o: Observation, upgrade: UpgradeStatus, known: RehearsalStatus, wanted: RehearsalSpec, now: float
) -> Outcome | None:
    """Return what the rehearsal came to, None if that is still to come, or is tried again.

    Args:
        o: everything that is known.
        upgrade: the record.
        known: its part about the rehearsal, which has begun.
        wanted: what was asked for.
        now: seconds since the epoch.
    """
    pod, seconds = find_pod(o, upgrade), seconds_of(known, now)
    if pod is not None and has_ended(pod):
        outcome = _read_end(pod)
        if outcome is not None:
            return outcome
    elif pod is not None and not pod.running:
        problem = name_start_problem(pod)
        patience = min(o.app.spec.pod_start_timeout_seconds, wanted.timeout_seconds)
        if problem is not None and is_named(problem) and seconds >= patience:
            return Outcome(RehearsalResult.FAILED, Reason.START_FAILED, problem.message)
    if seconds < limit_of(pod, wanted):
        return None
    return _without_result(o, upgrade, pod, wanted)


def seconds_of(known: RehearsalStatus, now: float) -> float:
    """Return for how long a rehearsal has been under way; a clock that was set back makes it wait longer, at most."""
    return max(0.0, now - known.start_time.timestamp()) if known.start_time is not None else 0.0


def limit_of(pod: PodRecord | None, wanted: RehearsalSpec) -> float:
    """Return after how many seconds a rehearsal is given up."""
    began = pod is not None and pod.running
    return float(longest_seconds(wanted) if began else wanted.timeout_seconds)


def _is_of(pod: PodRecord, o: Observation, upgrade: UpgradeStatus) -> bool:
    return pod.app_uid == o.app.metadata.uid and pod.spec_hash == upgrade.to_spec_hash


def _read_end(pod: PodRecord) -> Outcome | None:
    """Return what the end of its process says, None if nothing: another attempt may say more."""
    told = read_termination(pod.ended)
    if told is not None:
        return _read_termination(pod, told)
    if pod.reason == _DEADLINE:
        return _too_long(pod)
    ended = pod.ended
    if ended is None or pod.reason or lost_from_sight(ended):
        return None  # evicted, or gone with its node
    if ended.reason == KILLED_BY_MEMORY:
        message = messages.rehearsal_out_of_memory(pod.name)
        return Outcome(RehearsalResult.INCONCLUSIVE, Reason.OUT_OF_MEMORY, message)
    if ended.exit_code in (SIGKILL, EXIT_STOPPED):
        return None
    return Outcome(RehearsalResult.FAILED, Reason.START_FAILED, name_end(pod).message)


def _read_termination(pod: PodRecord, told: Termination) -> Outcome | None:
    message = reported(told.exception, told.message)
    end = told.rehearsal
    if end is None:  # it did not come so far as to know what it was to do
        return Outcome(RehearsalResult.FAILED, Reason.START_FAILED, message)
    if end.result is RehearsalResult.UNKNOWN:
        return Outcome(
            RehearsalResult.INCONCLUSIVE, Reason.UNKNOWN, with_remedy(Reason.UNKNOWN, message), end.committed
        )
    if end.what is Reason.STOPPED:
        return _too_long(pod) if pod.reason == _DEADLINE else None
    if end.what in (Reason.DEPENDENCY_UNAVAILABLE, Reason.SOURCE_DATA_LOST):
        message = name_reported(Fault(told.reason, told.message), pod).message
    elif end.what is Reason.OUT_OF_MEMORY:
        message = messages.rehearsal_needs_memory(message)
    return Outcome(end.result, end.what, message, end.committed)


def _too_long(pod: PodRecord) -> Outcome:
    message = messages.rehearsal_late(pod.name)
    return Outcome(RehearsalResult.INCONCLUSIVE, Reason.DEADLINE_EXCEEDED, message)


def _without_result(o: Observation, upgrade: UpgradeStatus, pod: PodRecord | None, wanted: RehearsalSpec) -> Outcome:
    if pod is not None and pod.running:
        return _too_long(pod)
    name, refusal = rehearsal_pod_name(o.app.metadata.name, upgrade.number), o.memory.refusal
    problem = name_start_problem(pod) if pod is not None else None
    if problem is not None:
        why = problem.message
    elif pod is None and refusal is not None and refusal.pod_name == name:
        why = refusal.message
    else:
        why = messages.pod_did_not_run(name)
    message = messages.rehearsal_without_room(why, wanted.timeout_seconds)
    return Outcome(RehearsalResult.INCONCLUSIVE, Reason.NO_ROOM, message)
