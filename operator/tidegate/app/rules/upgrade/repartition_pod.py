"""The pod that repartitions state: that it is there while it is to be, and what it comes to. No I/O.

Nothing is launched before it has ended, or it is known that it will say nothing any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.api.streaming_app import Phase, RepartitionStatus, UpgradePhase, UpgradeStatus
from tidegate.api.values.errors import SpecError
from tidegate.app.actions import Action, ConfirmDriverGone, ConfirmRecord, CreateRepartition, DeleteRepartition
from tidegate.app.builders.repartition_pod import build_repartition_pod
from tidegate.app.observation import Observation, lacks_access
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade import repartition_messages as texts
from tidegate.app.rules.upgrade.record import (
    BEFORE_A_LAUNCH,
    is_pending,
    seconds_in_phase,
    seconds_since,
    seconds_to_hear,
)
from tidegate.app.rules.upgrade.rehearsal import DEADLINE, Kept, refused_pod_waits
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import EnsureAccess
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.faults import (
    KILLED_BY_MEMORY,
    is_named,
    lost_from_sight,
    name_start_problem,
    read_termination,
)
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
class Repartitioned:
    """The lineage is whole."""

    end: RepartitionEnd
    message: str


@dataclass(frozen=True, slots=True)
class NotRepartitioned:
    """No lineage came of the attempt."""

    what: Reason
    message: str
    again: bool
    """Another one may do better."""


Outcome = Repartitioned | NotRepartitioned


def find_pod(o: Observation, known: RepartitionStatus) -> PodRecord | None:
    """Return the pod of this attempt, None if it is not there."""
    name = repartition_pod_name(o.app.metadata.name, known.epoch)
    mine = (pod for pod in o.repartitions if pod.name == name and pod.app_uid == o.app.metadata.uid)
    found = next(mine, None) if known.epoch else None
    return None if found is not None and known.pod_uid not in ("", found.uid) else found


def report_of(o: Observation, known: RepartitionStatus) -> SnapshotReport | None:
    """Return how far the attempt's pod says that it is, None if it has not said so."""
    pod, told = find_pod(o, known), o.memory.dividing
    if pod is None or told is None or told.process != process_of(pod):
        return None
    return told.report if told.report.of_files else None


def seconds_in_attempt(o: Observation, upgrade: UpgradeStatus, known: RepartitionStatus, now: float) -> float:
    """Return for how long an attempt has been under way; without a pod, for how long this process tried to have one.

    While no operator decides nobody makes it.
    """
    tried = find_pod(o, known) is None
    return seconds_to_hear(o, upgrade, now) if tried else seconds_in_phase(upgrade, now)


def outcome_of(
    o: Observation, known: RepartitionStatus, seconds: tuple[float, float], timeout: float
) -> Outcome | None:
    """Return what an attempt came to, None if that is still to come.

    Args:
        o: everything that is known.
        known: the record of it.
        seconds: for how long this attempt has been under way (see :func:`seconds_in_attempt`), and all of them.
        timeout: seconds after which it is given up.
    """
    pod, (in_attempt, in_all) = find_pod(o, known), seconds
    if pod is not None and pod.finished:
        return _read_end(pod, known)
    if in_all >= timeout:
        return NotRepartitioned(Reason.DEADLINE_EXCEEDED, texts.late(timeout), again=False)
    if pod is not None and (pod.terminating or pod.running):
        # Drained, or its node does not answer: it may be there for as long as that is away, and the application waits.
        gone = NotRepartitioned(Reason.NO_ROOM, texts.pod_deleted(pod.name), again=True)
        return gone if pod.terminating else None
    if pod is None and known.pod_uid:
        # Deleted by force, or with its node, maybe while nobody looked. What it did is in its lineage and nowhere else.
        return _lost(repartition_pod_name(o.app.metadata.name, known.epoch))
    return _not_begun(o, known, pod, in_attempt)


def _not_begun(
    o: Observation, known: RepartitionStatus, pod: PodRecord | None, in_attempt: float
) -> NotRepartitioned | None:
    """Return that no process will begin, None as long as one may."""
    problem = name_start_problem(pod) if pod is not None else None
    patience = min(o.app.spec.pod_start_timeout_seconds, ROOM_PATIENCE)
    if problem is not None and is_named(problem) and in_attempt >= patience:
        return NotRepartitioned(Reason.START_FAILED, problem.message, again=False)
    if in_attempt < ROOM_PATIENCE:
        return None
    name, refusal = repartition_pod_name(o.app.metadata.name, known.epoch), o.memory.refusal
    refused = refusal.message if pod is None and refusal is not None and refusal.pod_name == name else ""
    why = problem.message if problem is not None else refused or messages.pod_did_not_run(name)
    return NotRepartitioned(Reason.NO_ROOM, texts.without_room(why, ROOM_PATIENCE), again=False)


def _read_end(pod: PodRecord, known: RepartitionStatus) -> Outcome:
    told, ended = read_termination(pod.ended), pod.ended
    if told is not None and told.repartition is not None:
        return _read_termination(told, told.repartition, known)
    if told is not None:  # it did not come so far as to know what it was to do
        return NotRepartitioned(Reason.START_FAILED, told.message, again=False)
    if pod.reason == DEADLINE:
        message = texts.pod_late(pod.name)
        return NotRepartitioned(Reason.DEADLINE_EXCEEDED, message, again=False)
    if ended is not None and not pod.reason and not lost_from_sight(ended) and ended.reason == KILLED_BY_MEMORY:
        message = texts.out_of_memory(pod.name)
        return NotRepartitioned(Reason.OUT_OF_MEMORY, message, again=False)
    return _lost(pod.name)  # evicted, killed, or gone with its node


def _lost(name: str) -> NotRepartitioned:
    return NotRepartitioned(Reason.NO_ROOM, texts.pod_lost(name), again=True)


def _read_termination(told: Termination, end: RepartitionEnd, known: RepartitionStatus) -> Outcome:
    if told.reason is Reason.COMPLETED and end.what is Reason.NONE and end.lineage == known.lineage:
        return Repartitioned(end, _with_left_out(told.message, end))
    return NotRepartitioned(end.what or Reason.SPARK_FAILED, told.message, again=end.what in _PASSES)


def _with_left_out(reported: str, end: RepartitionEnd) -> str:
    of = len(end.queries) + end.left_out
    return texts.queries_without_room(reported, end.left_out, of) if end.left_out else reported


LONGEST_WAIT = 300.0
"""Seconds until it is looked whether a time is over, at most: clocks are set back."""


def hold_for_repartition(o: Observation, now: float) -> Verdict | None:
    """Launch nothing while the state that it would go on with is made."""
    upgrade = o.app.status.upgrade
    if o.driver is not None or upgrade is None or upgrade.phase not in BEFORE_A_LAUNCH or not is_pending(upgrade):
        return None
    message = messages.beside(upgrade.message, _progress(o, upgrade))
    wake_after = _look_again_in(o, now)
    return Verdict(
        Phase.REPARTITIONING, Health.RECONCILING, Reason.UPGRADE_REPARTITIONING, message, wake_after=wake_after
    )


def keep_repartition(o: Observation, now: float) -> Kept:
    """Return what is to be done about the pods.

    Args:
        o: everything that is known, with the spec's version, and the record as it is written by now.
        now: seconds since the epoch.
    """
    upgrade = o.app.status.upgrade
    wanted = _is_wanted(o, upgrade)
    known = upgrade.repartition if upgrade is not None else None
    mine = find_pod(o, known) if wanted and known is not None else None
    removed = tuple(DeleteRepartition(pod) for pod in o.repartitions if pod is not mine and not pod.terminating)
    if not wanted or mine is not None or known is None or known.pod_uid:
        return Kept(removed)  # an attempt has one pod: once that was there, no second one is made
    kept = _create(o, repartition_pod_name(o.app.metadata.name, known.epoch), now)
    return Kept((*removed, *kept.actions), kept.wake_after)


def _is_wanted(o: Observation, upgrade: UpgradeStatus | None) -> bool:
    if upgrade is None or upgrade.phase is not UpgradePhase.REPARTITIONING or upgrade.to_spec_hash != o.spec_hash:
        return False
    return is_pending(upgrade) and o.driver is None and not o.app.spec.suspend


def _create(o: Observation, name: str, now: float) -> Kept:
    if left := refused_pod_waits(o, name, now):
        return Kept(wake_after=left)
    try:
        create = CreateRepartition(build_repartition_pod(o.app, o.platform))
    except SpecError:
        return Kept()  # nothing is stopped for such a spec, and what was stopped goes on (see repartition_dry_run)
    access: tuple[Action, ...] = (EnsureAccess(),) if lacks_access(o) else ()
    # A cache alone never declares a driver dead, and what was recorded may be over.
    confirm = (ConfirmRecord(), ConfirmDriverGone(driver_pod_name(o.app.metadata.name)))
    return Kept((*access, *confirm, create))


def _progress(o: Observation, upgrade: UpgradeStatus) -> str:
    known = upgrade.repartition
    pod = find_pod(o, known) if known is not None else None
    if known is None or pod is None:
        return ""
    problem = name_start_problem(pod) if not pod.running and not pod.finished else None
    if problem is not None:
        return problem.message
    report = report_of(o, known)
    if report is None:
        return messages.see_pod(pod.name, pod.namespace)
    if report.files < report.of_files:
        return texts.copy_progress(pod.name, report.files, report.of_files)
    return texts.progress(pod.name, report.files, report.rows)


def _look_again_in(o: Observation, now: float) -> float | None:
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase is not UpgradePhase.REPARTITIONING or upgrade.repartition is None:
        return None
    in_attempt = seconds_in_attempt(o, upgrade, upgrade.repartition, now)
    in_all = seconds_since(upgrade.repartition.start_time, now)
    left = [limit - in_attempt for limit in (o.app.spec.pod_start_timeout_seconds, ROOM_PATIENCE)]
    left.append(o.app.spec.state.repartition.timeout_seconds - in_all)
    return earliest(LONGEST_WAIT, *(value for value in left if value > 0))
