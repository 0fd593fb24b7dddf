"""The pod that repartitions state is there while it is to, and nothing is launched before it has done so. No I/O."""

from __future__ import annotations

from tidegate.decide.actions import (
    Action,
    ConfirmDriverGone,
    ConfirmRecord,
    CreateRepartition,
    DeleteRepartition,
    EnsureAccess,
)
from tidegate.decide.faults import name_start_problem
from tidegate.decide.launch import refused_for
from tidegate.decide.rules import earliest
from tidegate.decide.upgrades import messages
from tidegate.decide.upgrades import repartition_messages as texts
from tidegate.decide.upgrades.rehearsal_pods import Kept
from tidegate.decide.upgrades.repartition_results import (
    ROOM_PATIENCE,
    find_pod,
    has_ended,
    report_of,
    seconds_in_attempt,
)
from tidegate.decide.upgrades.repartitioning import BEFORE_A_LAUNCH, is_pending, seconds_of
from tidegate.decide.verdict import Health, Verdict
from tidegate.model.errors import SpecError
from tidegate.model.streaming_app import Phase, UpgradePhase, UpgradeStatus
from tidegate.observe.observation import Observation, lacks_access
from tidegate.resources.names import driver_pod_name, repartition_pod_name
from tidegate.resources.repartition_pod import build_repartition_pod
from tidegate_spark.reasons import Reason

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
    refusal = o.memory.refusal
    if refusal is not None and refusal.pod_name == name:
        left = refused_for(refusal.at, refusal.attempts, now)
        if left:
            return Kept(wake_after=left)
    try:
        create = CreateRepartition(build_repartition_pod(o.app, o.platform))
    except SpecError:
        return Kept()  # nothing is stopped for such a spec, and what was stopped goes on (see dividing_pod)
    access: tuple[Action, ...] = (EnsureAccess(),) if lacks_access(o) else ()
    # A cache alone never declares a driver dead, and what was recorded may be over.
    confirm = (ConfirmRecord(), ConfirmDriverGone(driver_pod_name(o.app.metadata.name)))
    return Kept((*access, *confirm, create))


def _progress(o: Observation, upgrade: UpgradeStatus) -> str:
    known = upgrade.repartition
    pod = find_pod(o, known) if known is not None else None
    if known is None or pod is None:
        return ""
    problem = name_start_problem(pod) if not pod.running and not has_ended(pod) else None
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
    in_all = seconds_of(upgrade.repartition, now)
    left = [limit - in_attempt for limit in (o.app.spec.pod_start_timeout_seconds, ROOM_PATIENCE)]
    left.append(o.app.spec.state.repartition.timeout_seconds - in_all)
    return earliest(LONGEST_WAIT, *(value for value in left if value > 0))
