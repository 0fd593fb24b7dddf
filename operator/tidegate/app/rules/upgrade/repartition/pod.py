"""The repartition pod: created, awaited, and its result. No I/O.

Nothing is launched before it has ended, or is known to be gone without a message.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.api.streaming_app import Phase, RepartitionStatus, UpgradePhase, UpgradeStatus
from tidegate.app.actions import Action, ConfirmDriverGone, ConfirmRecord, CreateRepartition, DeleteRepartition
from tidegate.app.builders.repartition_pod import build_repartition_pod
from tidegate.app.observation import Observation, lacks_access
from tidegate.app.rules.pods import work_pod
from tidegate.app.rules.pods.work_pod import Kept
from tidegate.app.rules.upgrade import messages, record
from tidegate.app.rules.upgrade.repartition import messages as texts
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import EnsureAccess
from tidegate.engine.rules.health import Health
from tidegate.pods.records.faults import read_termination
from tidegate.pods.records.names import driver_pod_name, repartition_pod_name
from tidegate.pods.records.record import PodRecord, process_of
from tidegate_spark.contract.protocol import Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import RepartitionEnd
from tidegate_spark.contract.snapshot_protocol import SnapshotReport

ROOM_PATIENCE = 300.0
"""Seconds for a pod that is not admitted, or finds no node; the application does not run meanwhile."""
_PASSES = frozenset({Reason.DEPENDENCY_UNAVAILABLE, Reason.FENCED})
"""Ends after which another attempt may do better."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to: a whole lineage if ``end`` is there, else why there is none."""

    what: Reason
    message: str
    again: bool = False
    """Another attempt may do better."""
    end: RepartitionEnd | None = None


def find_pod(o: Observation, known: RepartitionStatus) -> PodRecord | None:
    """Return the pod of this attempt, None if it is not there."""
    name = repartition_pod_name(o.app.metadata.name, known.epoch)
    mine = (pod for pod in o.repartitions if pod.name == name and pod.app_uid == o.app.metadata.uid)
    found = next(mine, None) if known.epoch else None
    return None if found is not None and known.pod_uid not in ("", found.uid) else found


def report_of(o: Observation, known: RepartitionStatus) -> SnapshotReport | None:
    """Return how far the attempt's pod says that it is, None if it has not said so."""
    pod, reported = find_pod(o, known), o.memory.repartitioning
    if pod is None or reported is None or reported.process != process_of(pod):
        return None
    return reported.report if reported.report.of_files else None


def outcome_of(o: Observation, upgrade: UpgradeStatus, now: float) -> Outcome | None:
    """Return what the attempt in the record came to, None if that is still to come."""
    known, timeout = upgrade.repartition, float(o.app.spec.state.repartition.timeout_seconds)
    if known is None:
        return None
    pod, name = find_pod(o, known), repartition_pod_name(o.app.metadata.name, known.epoch)
    if pod is not None and pod.finished:
        return _read_end(pod, known)
    if record.seconds_since(known.start_time, now) >= timeout:
        return Outcome(Reason.DEADLINE_EXCEEDED, texts.late(timeout))
    if pod is not None and pod.terminating:
        # Drained, or its node does not answer: it may be there for as long as that is away, and the application waits.
        return Outcome(Reason.NO_ROOM, texts.pod_deleted(name), again=True)
    if pod is None and known.pod_uid:
        # Deleted by force, or with its node, maybe while nobody looked. What it did is in its lineage and nowhere else.
        return _lost(name)
    seconds = _seconds_in_attempt(o, upgrade, known, now)
    return None if pod is not None and pod.running else _not_begun(o, pod, name, seconds)


def _not_begun(o: Observation, pod: PodRecord | None, name: str, seconds: float) -> Outcome | None:
    """Return that no process will begin, None as long as one may."""
    problem = work_pod.never_starts(pod, seconds, min(o.app.spec.pod_start_timeout_seconds, ROOM_PATIENCE))
    if problem is not None:
        return Outcome(Reason.START_FAILED, problem.message)
    if seconds < ROOM_PATIENCE:
        return None
    return Outcome(Reason.NO_ROOM, texts.without_room(work_pod.why_not_running(o, pod, name), ROOM_PATIENCE))


def _seconds_in_attempt(o: Observation, upgrade: UpgradeStatus, known: RepartitionStatus, now: float) -> float:
    """Return for how long an attempt's pod could start; without a pod, for how long this process tried to have one."""
    pod = find_pod(o, known)
    if pod is None:
        return record.seconds_to_hear(o, upgrade, now)  # while no operator decides nobody makes it
    return work_pod.seconds_to_start(pod, record.seconds_in_phase(upgrade, now), now)


def _read_end(pod: PodRecord, known: RepartitionStatus) -> Outcome:
    termination = read_termination(pod.ended)
    if termination is not None and termination.repartition is not None:
        return _read_termination(termination, termination.repartition, known)
    if termination is not None:  # it did not come so far as to know what it was to do
        return Outcome(Reason.START_FAILED, termination.message)
    end = work_pod.silent_end(pod)
    if end is Reason.DEADLINE_EXCEEDED:
        return Outcome(end, texts.pod_late(pod.name))
    return Outcome(end, texts.out_of_memory(pod.name)) if end is Reason.OUT_OF_MEMORY else _lost(pod.name)


def _lost(name: str) -> Outcome:
    return Outcome(Reason.NO_ROOM, texts.pod_lost(name), again=True)


def _read_termination(termination: Termination, end: RepartitionEnd, known: RepartitionStatus) -> Outcome:
    if termination.reason is not Reason.COMPLETED or end.what is not Reason.NONE or end.lineage != known.lineage:
        return Outcome(end.what or Reason.SPARK_FAILED, termination.message, again=end.what in _PASSES)
    message, of = termination.message, len(end.queries) + end.left_out
    message = texts.queries_without_room(message, end.left_out, of) if end.left_out else message
    return Outcome(end.what, message, end=end)


def hold_for_repartition(o: Observation, now: float) -> Verdict | None:
    """Launch nothing while the state that it would go on with is made."""
    upgrade = o.app.status.upgrade
    if o.driver is not None or upgrade is None or upgrade.phase not in record.BEFORE_A_LAUNCH:
        return None
    if not record.is_pending(upgrade):
        return None
    message = messages.beside(upgrade.message, _progress(o, upgrade))
    again = _check_in(o, upgrade, now)
    return Verdict(Phase.REPARTITIONING, Health.RECONCILING, Reason.UPGRADE_REPARTITIONING, message, wake_after=again)


def keep_repartition(o: Observation, now: float) -> Kept:
    """Return what is to be done about the pods, for the record as it is written by now."""
    known = _wanted_for(o)
    mine = find_pod(o, known) if known is not None else None
    removed = tuple(DeleteRepartition(pod) for pod in o.repartitions if pod is not mine and not pod.terminating)
    if known is None or mine is not None or known.pod_uid:
        return Kept(removed)  # an attempt has one pod: once that was there, no second one is made
    name = repartition_pod_name(o.app.metadata.name, known.epoch)
    kept = work_pod.create_pod(o, name, lambda: _creation(o), now)
    return Kept((*removed, *kept.actions), kept.wake_after)


def _wanted_for(o: Observation) -> RepartitionStatus | None:
    """Return the attempt whose pod is to be there now, None if none is."""
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase is not UpgradePhase.REPARTITIONING or upgrade.to_spec_hash != o.spec_hash:
        return None
    return upgrade.repartition if record.is_pending(upgrade) and o.driver is None and not o.app.spec.suspend else None


def _creation(o: Observation) -> tuple[Action, ...]:
    create = CreateRepartition(build_repartition_pod(o.app, o.platform))
    access: tuple[Action, ...] = (EnsureAccess(),) if lacks_access(o) else ()
    # A cache alone never declares a driver dead, and what was recorded may be over.
    return (*access, ConfirmRecord(), ConfirmDriverGone(driver_pod_name(o.app.metadata.name)), create)


def _progress(o: Observation, upgrade: UpgradeStatus) -> str:
    known = upgrade.repartition
    pod = find_pod(o, known) if known is not None else None
    report = report_of(o, known) if known is not None else None
    if pod is None or report is None or not (pod.running or pod.finished):
        return work_pod.progress(pod)
    if report.files < report.of_files:
        return texts.copy_progress(pod.name, report.files, report.of_files)
    return texts.progress(pod.name, report.files, report.rows)


def _check_in(o: Observation, upgrade: UpgradeStatus, now: float) -> float | None:
    known = upgrade.repartition
    if upgrade.phase is not UpgradePhase.REPARTITIONING or known is None:
        return None
    in_attempt = _seconds_in_attempt(o, upgrade, known, now)
    left = [limit - in_attempt for limit in (o.app.spec.pod_start_timeout_seconds, ROOM_PATIENCE)]
    left.append(o.app.spec.state.repartition.timeout_seconds - record.seconds_since(known.start_time, now))
    return work_pod.check_in(left) or work_pod.LONGEST_WAIT
