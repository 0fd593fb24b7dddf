"""What is said of an application while its version changes, and what of its last change is still to be told. No I/O."""

from __future__ import annotations

import dataclasses

from tidegate.api.streaming_app import Phase, RepartitionResult, UpgradePhase, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.pods.executor_ends import END_REASONS
from tidegate.app.rules.pods.executors import lacks_key, name_silence
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.copying import ORDER_PAUSE, PATIENCE
from tidegate.app.rules.upgrade.effective_spec import STABLE_PHASES
from tidegate.app.rules.upgrade.gate import idle_in, is_idle, waits_for_input
from tidegate.app.rules.upgrade.record import (
    REHEARSAL_REASONS,
    UPGRADE_REASONS,
    Step,
    active_queries,
    failed_queries,
    find_report,
    is_pending,
    missing_queries,
    named,
    seconds_in_phase,
    seconds_since,
    seconds_to_hear,
    seconds_under_test,
    version_held,
)
from tidegate.app.rules.upgrade.rehearsal import find_pod, limit_of
from tidegate.app.rules.upgrade.repartition import starts_again
from tidegate.app.rules.upgrade.rollback import lost_snapshot_condition, why_ignored
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.faults import Problem, name_start_problem
from tidegate.snapshots.rules.messages import of_report
from tidegate.snapshots.rules.taking import FOR_A_PERSON
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalResult
from tidegate_spark.contract.snapshot_protocol import SnapshotState

LONGEST_WAIT = 300.0
"""Seconds until it is looked whether a time is over, at most: clocks are set back."""
_HEALTH = {
    UpgradePhase.COPYING: Health.RECONCILING,
    UpgradePhase.REHEARSING: Health.RECONCILING,
    UpgradePhase.STOPPING: Health.RECONCILING,
    UpgradePhase.REPARTITIONING: Health.RECONCILING,
    UpgradePhase.GATE: Health.RECONCILING,
    UpgradePhase.ROLLING_BACK: Health.RECONCILING,
    UpgradePhase.FAILED: Health.RECONCILING,
    UpgradePhase.REFUSED: Health.STALLED,
    UpgradePhase.ROLLED_BACK: Health.STALLED,
}
"""Who waits for the spec to be what runs must not be told that it is, however well the application runs."""

_WARNINGS = frozenset({UpgradePhase.REFUSED, UpgradePhase.FAILED, UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK})
"""Phases whose event is a warning."""
_BEFORE_THE_STOP = frozenset({UpgradePhase.COPYING, UpgradePhase.REHEARSING, UpgradePhase.REFUSED})
"""Phases in which the previous version is there, whatever it does, and the spec's is not."""
_OF_THE_RUNNING_VERSION = END_REASONS | {
    Reason.EXECUTORS_MISSING,
    Reason.EXECUTORS_LINGER,
    Reason.AGENT_UNREACHABLE,
    Reason.PROTOCOL_MISMATCH,
    Reason.ORDER_REFUSED,
    Reason.UNKNOWN,
}
"""Reasons whose message is shown beside the upgrade's: they say what the version that runs lacks."""


def refuse_unknown_version(o: Observation, now: float) -> Verdict | None:
    """Start nothing if the previous version is to run, and nobody knows it: it was never stable, or cannot be read."""
    upgrade = o.app.status.upgrade
    if o.driver is not None or upgrade is None or upgrade.phase not in STABLE_PHASES:
        return None
    if version_held(o.app.spec, o.app.status.last_stable) is not None:
        return None
    if upgrade.phase is not UpgradePhase.ROLLING_BACK and o.spec_hash == upgrade.to_spec_hash:
        return None
    return Verdict(Phase.PENDING, Health.STALLED, reason_of(upgrade), upgrade.message)


def reason_of(upgrade: UpgradeStatus) -> Reason:
    """Return the condition's and the event's word for the phase of an upgrade."""
    if starts_again(upgrade):
        return Reason.STATE_PARTITIONS_KEPT  # nothing has to be done about it
    return UPGRADE_REASONS[upgrade.phase]


def _may_come(o: Observation, upgrade: UpgradeStatus, now: float) -> bool:
    """Say whether what an edit lacks may still be on its way: who applies it with its Secrets has no order in it."""
    refused = upgrade.phase is UpgradePhase.REFUSED and upgrade.reason == Reason.REFERENCE_MISSING
    return refused and seconds_in_phase(upgrade, now) < o.app.spec.pod_start_timeout_seconds


def apply_upgrade_to_condition(o: Observation, wanted: str, verdict: Verdict, now: float) -> Verdict:
    """Return a verdict about what runs as one about what was asked for.

    Args:
        o: everything that is known.
        wanted: hash of the version in the spec.
        verdict: what the rules say of the version that is in force.
        now: seconds since the epoch.
    """
    upgrade = o.app.status.upgrade
    if upgrade is None:
        return verdict
    if upgrade.phase in _HEALTH:
        verdict = dataclasses.replace(verdict, wake_after=earliest(verdict.wake_after, _look_again_in(o, upgrade, now)))
    about_it = upgrade.to_spec_hash == wanted or upgrade.phase is UpgradePhase.ROLLING_BACK
    # One that is suspended is what the spec asks for, whatever version it has.
    if verdict.health is not Health.READY or verdict.phase not in (Phase.RUNNING, Phase.COMPLETED):
        return _beside_what_is(o, upgrade, verdict) if about_it else verdict
    stuck = _what_a_person_has_to_fix(o, upgrade)
    if stuck is not None:
        return dataclasses.replace(verdict, health=Health.STALLED, reason=stuck.reason, message=stuck.message)
    if upgrade.phase not in _HEALTH or not about_it:
        return verdict
    waits = starts_again(upgrade) or _may_come(o, upgrade, now)
    health = Health.RECONCILING if waits else _HEALTH[upgrade.phase]
    if upgrade.phase is UpgradePhase.GATE and is_idle(o, upgrade, now):
        health = Health.READY  # nobody knows when there will be input, and until then it is as it should be
    message = messages.beside(upgrade.message, _progress(o, upgrade, now))
    if verdict.reason in _OF_THE_RUNNING_VERSION:
        message = messages.beside(message, verdict.message)
    return dataclasses.replace(verdict, health=health, reason=reason_of(upgrade), message=message)


def _beside_what_is(o: Observation, upgrade: UpgradeStatus, verdict: Verdict) -> Verdict:
    """Return a verdict about the previous version, which starts or failed, with what becomes of the one in the spec.

    Who has just edited the spec is not to hear only of what was there before.
    """
    if upgrade.phase not in _BEFORE_THE_STOP or verdict.phase not in (Phase.STARTING, Phase.RUNNING, Phase.FAILED):
        return verdict
    if o.driver is None or not o.driver.running:
        return verdict
    return dataclasses.replace(verdict, message=messages.beside(verdict.message, upgrade.message))


def _what_a_person_has_to_fix(o: Observation, upgrade: UpgradeStatus) -> Problem | None:
    """Return what keeps an upgrade from going on that does not pass without somebody."""
    if upgrade.phase is UpgradePhase.GATE and lacks_key(o):
        # Nobody hears of its batches, so that it is neither stable nor late, for as long as it runs.
        silent = name_silence(o)
        return Problem(silent.reason, messages.beside(upgrade.message, silent.message)) if silent else None
    if upgrade.phase is not UpgradePhase.COPYING or upgrade.rollback_snapshot is None:
        return lost_snapshot_condition(o)
    report = find_report(o, upgrade.rollback_snapshot.copy)
    if report is None or report.state is not SnapshotState.WAITING or report.reason not in FOR_A_PERSON:
        return None
    return Problem(report.reason, messages.copy_waits(upgrade.message, of_report(report, report.reason)))


def step_events(o: Observation, step: Step | None) -> tuple[PublishEvent, ...]:
    """Return the events of a step into another phase, of another upgrade, or of an answer to a wish."""
    upgrade, known = step.upgrade if step is not None else None, o.app.status.upgrade
    if step is None or upgrade is None:
        return _early_wish_event(o)
    rehearsed = (*_rehearsal_event(upgrade, known), *_wish_event(upgrade, known))
    if is_told(upgrade, known):
        return rehearsed
    again = f"/{_attempts(upgrade)}" if _attempts(upgrade) > 1 else ""
    occasion = f"{upgrade.number}/{upgrade.phase.value}/{_since(known)}{again}"
    return (*rehearsed, PublishEvent(_event_reason(upgrade), upgrade.message, upgrade.phase in _WARNINGS, occasion))


def _event_reason(upgrade: UpgradeStatus) -> Reason:
    """Return the event's word: state that is divided is no stop, although the record is in that phase again."""
    known = upgrade.repartition
    divided = known is not None and known.result == RepartitionResult.COMPLETED
    return Reason.UPGRADE_REPARTITIONED if divided and upgrade.phase is UpgradePhase.STOPPING else reason_of(upgrade)


def is_told(upgrade: UpgradeStatus, known: UpgradeStatus | None) -> bool:
    """Return whether a record's phase was told before it was stored, with the step that led to it.

    A further attempt at a repartition is told, too: its pod takes the place of one that is gone, with its log.
    """
    return known is not None and _told_of(known) == _told_of(upgrade)


def _told_of(upgrade: UpgradeStatus) -> tuple[int, UpgradePhase, str, int]:
    return upgrade.number, upgrade.phase, upgrade.to_spec_hash, max(1, _attempts(upgrade))


def _attempts(upgrade: UpgradeStatus) -> int:
    return upgrade.repartition.attempts if upgrade.repartition is not None else 0


def _since(known: UpgradeStatus | None) -> str:
    """Return since when it was otherwise, as stored: what recurs is told again, what is only decided again is not."""
    return (
        f"{known.phase_start_time.timestamp():.0f}" if known is not None and known.phase_start_time is not None else ""
    )


def _early_wish_event(o: Observation) -> tuple[PublishEvent, ...]:
    """Return the event of a wish for a rollback that there was no upgrade for, at the first look at the spec."""
    seen = o.app.status.observed_generation == o.app.metadata.generation
    if seen or o.app.status.upgrade is not None or o.app.metadata.deletion_timestamp is not None:
        return ()
    return _ignored(None, o.app.spec.upgrade.rollback_to)


def _wish_event(upgrade: UpgradeStatus, known: UpgradeStatus | None) -> tuple[PublishEvent, ...]:
    """Return the event of a wish for a rollback that nothing follows from, and that has just been noted."""
    if known is None or known.number != upgrade.number or known.rollback_to == upgrade.rollback_to:
        return ()
    return _ignored(upgrade, upgrade.rollback_to)


def _ignored(upgrade: UpgradeStatus | None, wish: str) -> tuple[PublishEvent, ...]:
    why, number = why_ignored(upgrade, wish), upgrade.number if upgrade is not None else 0
    return (PublishEvent(Reason.ROLLBACK_IGNORED, why, True, f"{number}/{wish}"),) if why else ()


def _rehearsal_event(upgrade: UpgradeStatus, known: UpgradeStatus | None) -> tuple[PublishEvent, ...]:
    """Return the event of a rehearsal that has just ended, or was left out."""
    new, old = upgrade.rehearsal, known.rehearsal if known is not None else None
    if new is None or not new.result or new == old:
        return ()
    result = RehearsalResult(new.result)
    message, warning = messages.rehearsal_event(result, new.cause, new.message), result is not RehearsalResult.PASSED
    return (PublishEvent(REHEARSAL_REASONS[result], message, warning, f"{upgrade.number}/{_since(known)}"),)


def _progress(o: Observation, upgrade: UpgradeStatus, now: float) -> str:
    if upgrade.phase is UpgradePhase.COPYING and upgrade.rollback_snapshot is not None:
        report = find_report(o, upgrade.rollback_snapshot.copy)
        if report is None:
            late = is_pending(upgrade) and seconds_to_hear(o, upgrade, now) >= PATIENCE
            return messages.AGENT_SILENT if late else ""
        if report.message:
            return report.message
        return messages.copy_progress(report.files, report.of_files) if report.of_files else ""
    if upgrade.phase is UpgradePhase.REHEARSING:
        return _progress_of_rehearsal(o, upgrade)
    if upgrade.phase is not UpgradePhase.GATE or not active_queries(o):
        return ""
    wanted = o.app.spec.upgrade.stable_batches
    least = min(query.committed for query in active_queries(o))
    lacks = messages.WAITS_FOR_INPUT if waits_for_input(o, upgrade, now) else ""
    failed, missing = failed_queries(o), missing_queries(o, upgrade, now)
    if failed:
        lacks = messages.queries_failed(named(failed), several=len(failed) > 1)
    elif missing:
        lacks = messages.queries_missing(named(missing), several=len(missing) > 1)
    return messages.gate_progress(wanted, min(least, wanted), lacks)


def _progress_of_rehearsal(o: Observation, upgrade: UpgradeStatus) -> str:
    pod = find_pod(o, upgrade)
    if pod is None:
        return ""
    problem = name_start_problem(pod) if not pod.running else None
    return problem.message if problem is not None else messages.see_pod(pod.name, pod.namespace)


def _look_again_in(o: Observation, upgrade: UpgradeStatus, now: float) -> float | None:
    seconds = seconds_in_phase(upgrade, now)
    if upgrade.phase is UpgradePhase.REHEARSING:
        return _look_at_rehearsal_in(o, upgrade, now)
    left: list[float] = []
    if upgrade.phase is UpgradePhase.COPYING:
        unknown = upgrade.rollback_snapshot is not None and find_report(o, upgrade.rollback_snapshot.copy) is None
        # An agent that did not take the order, in a hurry or because it was slow, is told again.
        left = [PATIENCE - seconds_to_hear(o, upgrade, now), ORDER_PAUSE if unknown else 0.0]
    elif upgrade.phase is UpgradePhase.GATE:
        limit, tested = o.app.spec.upgrade.timeout_seconds, seconds_under_test(upgrade, now)
        left = [o.app.spec.pod_start_timeout_seconds - seconds, limit - tested, idle_in(o, upgrade, now) or 0.0]
    elif upgrade.phase is UpgradePhase.FAILED and missing_queries(o, upgrade, now):
        left = [o.app.spec.upgrade.timeout_seconds - seconds]
    left = [value for value in left if value > 0]
    return min(LONGEST_WAIT, *left) if left else None


def _look_at_rehearsal_in(o: Observation, upgrade: UpgradeStatus, now: float) -> float | None:
    wanted, known = o.app.spec.upgrade.rehearsal, upgrade.rehearsal
    if wanted is None or known is None or known.start_time is None:
        return None
    seconds = seconds_since(known.start_time, now)
    limits = (min(o.app.spec.pod_start_timeout_seconds, wanted.timeout_seconds), limit_of(find_pod(o, upgrade), wanted))
    left = [limit - seconds for limit in limits if limit > seconds]
    return min(LONGEST_WAIT, *left) if left else None
