"""The phase Rehearsing: the new version runs on a copy of the state while the previous version runs. No I/O.

Only a failure refuses the version. An inconclusive rehearsal lets the upgrade go on to the gate; otherwise a lack of
input or of room would block every upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tidegate.api.streaming_app import RehearsalSpec, RehearsalStatus, RehearsedQuery, UpgradePhase, UpgradeStatus
from tidegate.app.actions import Action, ConfirmRecord, CreateRehearsal, DeleteRehearsal
from tidegate.app.builders.rehearsal_pod import build_rehearsal, longest_seconds
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.launch import provide
from tidegate.app.rules.pods import work_pod
from tidegate.app.rules.pods.work_pod import Kept
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.record import Step, change, seconds_since, with_obsolete
from tidegate.engine.rules.actions import EnsureAccess
from tidegate.engine.rules.pauses import clocks_time_left
from tidegate.pods.records.fault_messages import reported, with_remedy
from tidegate.pods.records.faults import end_problem, read_termination, reported_problem
from tidegate.pods.records.names import rehearsal_pod_name
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import Fault, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalResult

RETRY_PAUSE = 15.0
"""Seconds from the creation of a pod that ended without a report until the next one: a node may refuse it at once."""
INCONCLUSIVE, FAILED = RehearsalResult.INCONCLUSIVE, RehearsalResult.FAILED


def left_out(o: Observation, why: str, now: float) -> RehearsalStatus | None:
    """Return the record of a rehearsal that was asked for and is not to be had, None if nobody asked."""
    if o.app.spec.upgrade.rehearsal is None:
        return None
    return msgspec.structs.replace(_outcome(INCONCLUSIVE, Reason.NO_COPY, why), completion_time=time_from_seconds(now))


def starts_or_pauses(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Start the time of the rehearsal, or clear it while the application is suspended."""
    known = upgrade.rehearsal or RehearsalStatus()
    begun = known.start_time is not None
    if o.app.spec.upgrade.rehearsal is None or begun != o.app.spec.suspend:
        return None
    started = None if begun else time_from_seconds(now)
    return change(upgrade, rehearsal=msgspec.structs.replace(known, start_time=started))


def failed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Refuse the version."""
    return _ended(o, upgrade, FAILED, messages.rehearsal_failed, now)


def passed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Stop the previous version."""
    return _ended(o, upgrade, RehearsalResult.PASSED, messages.rehearsal_passed, now)


def is_inconclusive(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Stop the previous version all the same, because the gate follows."""
    return _ended(o, upgrade, INCONCLUSIVE, messages.rehearsal_inconclusive, now)


def copy_is_for_nothing(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Dispose of the copy for a version that will not be launched."""
    snapshot = upgrade.rollback_snapshot
    if upgrade.epoch or upgrade.previous is not None or snapshot is None or not snapshot.copy or o.rehearsals:
        return None  # what was launched, or is the snapshot of the upgrade before, may not be complete yet
    without = msgspec.structs.replace(snapshot, copy="")
    return change(upgrade, rollback_snapshot=without, obsolete=with_obsolete(upgrade, snapshot.copy))


def _ended(
    o: Observation, upgrade: UpgradeStatus, result: RehearsalResult, message: Callable[[str], str], now: float
) -> Step | None:
    """Record what the rehearsal came to, if it was that."""
    outcome, known = _find_outcome(o, upgrade, now), upgrade.rehearsal
    if outcome is None or outcome.result != result.value:
        return None
    start, end = known.start_time if known is not None else None, time_from_seconds(now)
    ended = msgspec.structs.replace(outcome, start_time=start, completion_time=end)
    return change(upgrade, message(outcome.message), rehearsal=ended)


def _outcome(
    result: RehearsalResult, cause: Reason, message: str, committed: Mapping[str, int] | None = None
) -> RehearsalStatus:
    """Return the record of what a rehearsal came to, but for its times."""
    batches = tuple(RehearsedQuery(name=name, committed=n) for name, n in sorted((committed or {}).items()))
    return RehearsalStatus(result=result.value, cause=cause, batches=batches, message=message)


def _find_outcome(o: Observation, upgrade: UpgradeStatus, now: float) -> RehearsalStatus | None:
    """Return what the rehearsal came to, None if that is still to come, or is tried again."""
    wanted, known = o.app.spec.upgrade.rehearsal, upgrade.rehearsal
    if wanted is None:
        return _outcome(INCONCLUSIVE, Reason.STOPPED, messages.REHEARSAL_CANCELLED)
    if o.app.spec.suspend or known is None or known.start_time is None:
        return None
    pod, seconds = find_pod(o, upgrade), seconds_since(known.start_time, now)
    finished = pod is not None and pod.finished
    outcome = _read_end(pod) if pod is not None and finished else None
    problem = None if finished else work_pod.never_starts(pod, 0.0, 0.0)
    if problem is not None:
        # Whatever is left of the time: that nothing is known of a version whose pod cannot start is not true.
        is_over = work_pod.seconds_to_start(pod, seconds, now) >= _start_limit(o, wanted)
        return _outcome(FAILED, Reason.START_FAILED, problem.message) if is_over else None
    if outcome is not None or seconds < _limit(pod, wanted):
        return outcome
    return _too_long(pod) if pod is not None and pod.running else _not_run(o, upgrade, pod, wanted.timeout_seconds)


def _not_run(o: Observation, upgrade: UpgradeStatus, pod: PodRecord | None, seconds: int) -> RehearsalStatus:
    """Return what a rehearsal came to that does not run when its time is over, and left no result."""
    if pod is not None and pod.ended is not None:
        return _outcome(INCONCLUSIVE, Reason.STOPPED, messages.rehearsal_lost(pod.name, seconds))
    why = work_pod.why_not_running(o, pod, rehearsal_pod_name(o.app.metadata.name, upgrade.number))
    return _outcome(INCONCLUSIVE, Reason.NO_ROOM, messages.rehearsal_without_room(why, seconds))


def find_pod(o: Observation, upgrade: UpgradeStatus) -> PodRecord | None:
    """Return the pod in which this upgrade's version is rehearsed, None if it is not there."""
    mine = (rehearsal_pod_name(o.app.metadata.name, upgrade.number), o.app.metadata.uid, upgrade.to_spec_hash)
    return next((pod for pod in o.rehearsals if (pod.name, pod.app_uid, pod.spec_hash) == mine), None)


def check_rehearsal_in(o: Observation, upgrade: UpgradeStatus, now: float) -> float | None:
    """Return in how many seconds a rehearsal may be over by its time alone, None if it has none."""
    wanted, known = o.app.spec.upgrade.rehearsal, upgrade.rehearsal
    if wanted is None or known is None or known.start_time is None:
        return None
    pod, seconds = find_pod(o, upgrade), seconds_since(known.start_time, now)
    to_start = _start_limit(o, wanted) - work_pod.seconds_to_start(pod, seconds, now)
    return work_pod.check_in((to_start, _limit(pod, wanted) - seconds))


def _start_limit(o: Observation, wanted: RehearsalSpec) -> float:
    return min(o.app.spec.pod_start_timeout_seconds, wanted.timeout_seconds)


def _limit(pod: PodRecord | None, wanted: RehearsalSpec) -> float:
    """Return after how many seconds a rehearsal is given up."""
    return longest_seconds(wanted) if pod is not None and pod.running else wanted.timeout_seconds


def _read_end(pod: PodRecord) -> RehearsalStatus | None:
    """Return what the end of its process says, None if nothing: another attempt may say more."""
    termination = read_termination(pod.ended)
    if termination is not None:
        return _read_termination(pod, termination)
    end = work_pod.silent_end(pod)
    if end is Reason.DEADLINE_EXCEEDED:
        return _too_long(pod)
    if end is Reason.OUT_OF_MEMORY:
        return _outcome(INCONCLUSIVE, end, messages.rehearsal_out_of_memory(pod.name))
    return _outcome(FAILED, end, end_problem(pod).message) if end is Reason.START_FAILED else None


def _read_termination(pod: PodRecord, termination: Termination) -> RehearsalStatus | None:
    message = reported(termination.exception, termination.message)
    end = termination.rehearsal
    if end is None:  # it did not come so far as to know what it was to do
        return _outcome(FAILED, Reason.START_FAILED, message)
    if end.result is RehearsalResult.UNKNOWN:
        return _outcome(INCONCLUSIVE, Reason.UNKNOWN, with_remedy(Reason.UNKNOWN, message), end.committed)
    if end.what is Reason.STOPPED:
        return _too_long(pod) if pod.reason == work_pod.DEADLINE else None
    if end.what in (Reason.DEPENDENCY_UNAVAILABLE, Reason.SOURCE_DATA_LOST):
        message = reported_problem(Fault(termination.reason, termination.message), pod).message
    elif end.what is Reason.OUT_OF_MEMORY:
        message = messages.rehearsal_needs_memory(message)
    return _outcome(end.result, end.what, message, end.committed)


def _too_long(pod: PodRecord) -> RehearsalStatus:
    return _outcome(INCONCLUSIVE, Reason.DEADLINE_EXCEEDED, messages.rehearsal_late(pod.name))


def keep_rehearsal(o: Observation, now: float) -> Kept:
    """Return what is to be done about the pods of rehearsals, for the record as it is written by now."""
    upgrade = _wanted_for(o)
    mine = find_pod(o, upgrade) if upgrade is not None else None
    removed = tuple(DeleteRehearsal(pod) for pod in o.rehearsals if pod is not mine and not pod.terminating)
    if upgrade is None:
        return Kept(removed)
    if mine is not None:
        left = clocks_time_left(mine.created_at, RETRY_PAUSE, now) if mine.finished and not mine.terminating else None
        return Kept((*removed, DeleteRehearsal(mine))) if left == 0 else Kept(removed, left)
    name = rehearsal_pod_name(o.app.metadata.name, upgrade.number)
    if o.driver is None or any(pod.name == name for pod in o.rehearsals):
        return Kept(removed)  # what room there is, is the driver's; or another version's is on its way out
    kept = work_pod.create_pod(o, name, lambda: _creation(o), now)
    return Kept((*removed, *kept.actions), kept.wake_after)


def _wanted_for(o: Observation) -> UpgradeStatus | None:
    """Return the upgrade whose version is to be rehearsed now, None if none is."""
    upgrade, spec = o.app.status.upgrade, o.app.spec
    if upgrade is None or upgrade.phase is not UpgradePhase.REHEARSING or upgrade.to_spec_hash != o.spec_hash:
        return None
    known = upgrade.rehearsal
    begun = known is not None and known.start_time is not None and not known.result
    return upgrade if begun and spec.upgrade.rehearsal is not None and not spec.suspend else None


def _creation(o: Observation) -> tuple[Action, ...]:
    built = build_rehearsal(o.app, o.platform)
    # A driver that an earlier operator launched runs as another account: that it is well says nothing of this one.
    access: tuple[Action, ...] = () if o.app.spec.service_account_name else (EnsureAccess(),)
    # A leader of the last second may see a record that says so no more.
    return (*access, ConfirmRecord(), CreateRehearsal(built.manifest), *provide(built))
