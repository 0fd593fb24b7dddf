"""The new version shows on a copy of the state what it does, while the previous version runs. No I/O.

Only a failure holds it back. Without a result the upgrade goes on: an application that has no input for a while, or a
cluster without room, would otherwise never get another version, and the gate is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from tidegate.api.streaming_app import RehearsalSpec, RehearsalStatus, RehearsedQuery, UpgradePhase, UpgradeStatus
from tidegate.api.values.errors import SpecError
from tidegate.app.actions import Action, ConfirmRecord, CreateRehearsal, DeleteRehearsal
from tidegate.app.builders.rehearsal_pod import build_rehearsal, longest_seconds
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.launch import provide
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.record import Step, change, seconds_since, with_obsolete
from tidegate.engine.rules.actions import EnsureAccess
from tidegate.engine.rules.pauses import refused_for, time_left
from tidegate.pods.records.fault_messages import reported, with_remedy
from tidegate.pods.records.faults import (
    KILLED_BY_MEMORY,
    SIGKILL,
    is_named,
    lost_from_sight,
    name_end,
    name_reported,
    name_start_problem,
    read_termination,
)
from tidegate.pods.records.names import rehearsal_pod_name
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import EXIT_STOPPED, Fault, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalResult


def left_out(o: Observation, why: str, now: float) -> RehearsalStatus | None:
    """Return the record of a rehearsal that was asked for and is not to be had, None if nobody asked."""
    if o.app.spec.upgrade.rehearsal is None:
        return None
    what, result = Reason.NO_COPY, RehearsalResult.INCONCLUSIVE.value
    return RehearsalStatus(result=result, cause=what, message=why, completion_time=time_from_seconds(now))


def starts_or_pauses(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Let the time of the rehearsal begin, or, while its pod is removed as the driver's is, begin again later."""
    known = upgrade.rehearsal or RehearsalStatus()
    begun = known.start_time is not None
    if upgrade.to_spec_hash != o.spec_hash or o.app.spec.upgrade.rehearsal is None or begun != o.app.spec.suspend:
        return None
    started = None if begun else time_from_seconds(now)
    return change(upgrade, rehearsal=msgspec.structs.replace(known, start_time=started))


def failed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Hold the version back."""
    return _ended(o, upgrade, RehearsalResult.FAILED, messages.rehearsal_failed, now)


def passed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Stop the previous version."""
    return _ended(o, upgrade, RehearsalResult.PASSED, messages.rehearsal_passed, now)


def is_inconclusive(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Stop the previous version all the same: the gate is still to come."""
    return _ended(o, upgrade, RehearsalResult.INCONCLUSIVE, messages.rehearsal_inconclusive, now)


def copy_is_for_nothing(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Have the copy removed of a version that will not be launched: nothing else needs it."""
    if upgrade.epoch or upgrade.previous is not None:
        return None  # what was launched, or is the snapshot of the upgrade before, may not be complete yet
    snapshot = upgrade.rollback_snapshot
    if snapshot is None or not snapshot.copy or o.rehearsals:
        return None
    obsolete = with_obsolete(upgrade, snapshot.copy)
    return change(upgrade, rollback_snapshot=msgspec.structs.replace(snapshot, copy=""), obsolete=obsolete)


def _ended(
    o: Observation, upgrade: UpgradeStatus, result: RehearsalResult, message: Callable[[str], str], now: float
) -> Step | None:
    """Record what the rehearsal came to, if it was that."""
    outcome = _outcome(o, upgrade, now) if upgrade.to_spec_hash == o.spec_hash else None
    if outcome is None or outcome.result is not result:
        return None
    batches = tuple(RehearsedQuery(name=name, committed=number) for name, number in sorted(outcome.batches.items()))
    rehearsal = msgspec.structs.replace(
        upgrade.rehearsal or RehearsalStatus(),
        result=result.value,
        cause=outcome.what,
        batches=batches,
        message=outcome.message,
        completion_time=time_from_seconds(now),
    )
    return change(upgrade, message(outcome.message), rehearsal=rehearsal)


def _outcome(o: Observation, upgrade: UpgradeStatus, now: float) -> Outcome | None:
    wanted, known = o.app.spec.upgrade.rehearsal, upgrade.rehearsal
    if wanted is None:
        return Outcome(RehearsalResult.INCONCLUSIVE, Reason.STOPPED, messages.REHEARSAL_CANCELLED)
    if o.app.spec.suspend or known is None or known.start_time is None:
        return None
    return result_of(o, upgrade, known, wanted, now)


DEADLINE = "DeadlineExceeded"
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
    pod, seconds = find_pod(o, upgrade), seconds_since(known.start_time, now)
    if pod is not None and pod.finished:
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
    if pod.reason == DEADLINE:
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
        return _too_long(pod) if pod.reason == DEADLINE else None
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


RETRY_PAUSE = 15.0
"""Seconds from the creation of a pod that ended without a word until it is made again: a node may refuse it at once."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is to be done about the pods, and when to check again."""

    actions: tuple[Action, ...] = ()
    wake_after: float | None = None


NOTHING = Kept()


def keep_rehearsal(o: Observation, now: float) -> Kept:
    """Return what is to be done about the pods of rehearsals.

    Args:
        o: everything that is known, with the spec's version, and the record as it is written by now.
        now: seconds since the epoch.
    """
    upgrade = wanted_for(o)
    mine = find_pod(o, upgrade) if upgrade is not None else None
    removed = tuple(DeleteRehearsal(pod) for pod in o.rehearsals if pod is not mine and not pod.terminating)
    if upgrade is None:
        return Kept(removed)
    if mine is None:
        name = rehearsal_pod_name(o.app.metadata.name, upgrade.number)
        if any(pod.name == name for pod in o.rehearsals):
            return Kept(removed)  # another version's, which is on its way out
        if o.driver is None:
            return Kept(removed)  # what room there is, is the driver's
        kept = _create(o, name, now)
        return Kept((*removed, *kept.actions), kept.wake_after)
    if mine.finished and not mine.terminating:
        left = time_left(mine.created_at, RETRY_PAUSE, now)
        return Kept(removed, left) if left else Kept((*removed, DeleteRehearsal(mine)))
    return Kept(removed)


def wanted_for(o: Observation) -> UpgradeStatus | None:
    """Return the upgrade whose version is to be rehearsed now, None if none is."""
    upgrade, spec = o.app.status.upgrade, o.app.spec
    if upgrade is None or upgrade.phase is not UpgradePhase.REHEARSING or upgrade.to_spec_hash != o.spec_hash:
        return None
    rehearsal = upgrade.rehearsal
    begun = rehearsal is not None and rehearsal.start_time is not None and not rehearsal.result
    return upgrade if begun and spec.upgrade.rehearsal is not None and not spec.suspend else None


def refused_pod_waits(o: Observation, name: str, now: float) -> float:
    """Return for how many seconds more a pod is not tried that the API server took last time for none."""
    refusal = o.memory.refusal
    return refused_for(refusal.at, refusal.attempts, now) if refusal is not None and refusal.pod_name == name else 0.0


def _create(o: Observation, name: str, now: float) -> Kept:
    if left := refused_pod_waits(o, name, now):
        return Kept(wake_after=left)
    try:
        built = build_rehearsal(o.app, o.platform)
    except SpecError:
        return NOTHING  # given up when its time is over; of the driver's pod it was tried when the upgrade began
    # A driver that an earlier operator launched runs as another account: that it is well says nothing of this one.
    access: tuple[Action, ...] = () if o.app.spec.service_account_name else (EnsureAccess(),)
    # A leader of the last second may see a record that says so no more.
    return Kept((*access, ConfirmRecord(), CreateRehearsal(built.manifest), *provide(built)))
