"""What conditions and events report of an upgrade. No I/O."""

from __future__ import annotations

import dataclasses

from tidegate.api.streaming_app import Phase, RepartitionResult, UpgradePhase, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.pods import work_pod
from tidegate.app.rules.pods.executor_ends import END_REASONS
from tidegate.app.rules.pods.executors import lacks_key, silence_problem
from tidegate.app.rules.upgrade import messages, record, rehearsal
from tidegate.app.rules.upgrade.copying import ORDER_PAUSE, PATIENCE
from tidegate.app.rules.upgrade.effective_spec import STABLE_PHASES
from tidegate.app.rules.upgrade.gate import idle_in, is_idle, waits_for_input
from tidegate.app.rules.upgrade.record import UPGRADE_REASONS, Step
from tidegate.app.rules.upgrade.repartition.phase import starts_again
from tidegate.app.rules.upgrade.rollback import lost_snapshot_condition, why_ignored
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.faults import Problem
from tidegate.snapshots.rules.messages import of_report
from tidegate.snapshots.rules.taking import FOR_A_PERSON
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalResult
from tidegate_spark.contract.snapshot_protocol import SnapshotState

_HEALTH = dict.fromkeys((*record.UNDER_WAY, UpgradePhase.FAILED), Health.RECONCILING) | dict.fromkeys(
    (UpgradePhase.REFUSED, UpgradePhase.ROLLED_BACK), Health.STALLED
)
"""Whoever waits until the spec is what runs must not read that it is, however well the application runs."""
_REHEARSAL_REASONS = {
    RehearsalResult.PASSED: Reason.REHEARSAL_PASSED,
    RehearsalResult.FAILED: Reason.REHEARSAL_FAILED,
    RehearsalResult.INCONCLUSIVE: Reason.REHEARSAL_INCONCLUSIVE,
}
"""The event's reason for each result."""
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
    if record.version_held(o.app.spec, o.app.status.last_stable) is not None:
        return None
    if upgrade.phase is not UpgradePhase.ROLLING_BACK and o.spec_hash == upgrade.to_spec_hash:
        return None
    stable = o.app.status.last_stable
    gone = record.secret_gone(o.app.spec, stable) if stable is not None else ""
    message = messages.previous_cannot_start(upgrade.message, gone)
    return Verdict(Phase.PENDING, Health.STALLED, reason_of(upgrade), message)


def reason_of(upgrade: UpgradeStatus) -> Reason:
    """Return the condition's and the event's reason for the phase of an upgrade."""
    if starts_again(upgrade):
        return Reason.STATE_PARTITIONS_KEPT  # nothing has to be done about it
    return UPGRADE_REASONS[upgrade.phase]


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
        verdict = dataclasses.replace(verdict, wake_after=earliest(verdict.wake_after, _check_in(o, upgrade, now)))
    about_it = upgrade.to_spec_hash == wanted or upgrade.phase is UpgradePhase.ROLLING_BACK
    # One that is suspended is what the spec asks for, whatever version it has.
    if verdict.health is not Health.READY or verdict.phase not in (Phase.RUNNING, Phase.COMPLETED):
        return _beside_what_is(o, upgrade, verdict) if about_it else verdict
    stuck = _what_a_person_has_to_fix(o, upgrade)
    if stuck is not None:
        return dataclasses.replace(verdict, health=Health.STALLED, reason=stuck.reason, message=stuck.message)
    if upgrade.phase not in _HEALTH or not about_it:
        return verdict
    message = messages.beside(upgrade.message, _progress(o, upgrade, now))
    if verdict.reason in _OF_THE_RUNNING_VERSION:
        message = messages.beside(message, verdict.message)
    return dataclasses.replace(verdict, health=_health(o, upgrade, now), reason=reason_of(upgrade), message=message)


def _health(o: Observation, upgrade: UpgradeStatus, now: float) -> Health:
    if upgrade.phase is UpgradePhase.GATE and is_idle(o, upgrade, now):
        return Health.READY  # nobody knows when there will be input, and until then it is as it should be
    if upgrade.phase is UpgradePhase.REFUSED and upgrade.reason == Reason.REFERENCE_MISSING:
        # It may still be on its way: who applies an edit with its Secrets has no order in it.
        comes = record.seconds_in_phase(upgrade, now) < o.app.spec.pod_start_timeout_seconds
        return Health.RECONCILING if comes else Health.STALLED
    return Health.RECONCILING if starts_again(upgrade) else _HEALTH[upgrade.phase]


def _beside_what_is(o: Observation, upgrade: UpgradeStatus, verdict: Verdict) -> Verdict:
    """Return a verdict about the previous version, which starts or failed, with what becomes of the one in the spec.

    Whoever has just edited the spec must not read only about the previous version.
    """
    if upgrade.phase not in _BEFORE_THE_STOP or verdict.phase not in (Phase.STARTING, Phase.RUNNING, Phase.FAILED):
        return verdict
    if o.driver is None or not o.driver.running:
        return verdict
    return dataclasses.replace(verdict, message=messages.beside(verdict.message, upgrade.message))


def _what_a_person_has_to_fix(o: Observation, upgrade: UpgradeStatus) -> Problem | None:
    """Return what stops an upgrade and does not pass by itself."""
    if upgrade.phase is UpgradePhase.GATE and lacks_key(o):
        # Nobody learns of its batches, so it is neither stable nor late, for as long as it runs.
        silent = silence_problem(o)
        return Problem(silent.reason, messages.beside(upgrade.message, silent.message)) if silent else None
    if upgrade.phase is not UpgradePhase.COPYING or upgrade.rollback_snapshot is None:
        return lost_snapshot_condition(o)
    report = record.report_of_copy(o, upgrade)
    if report is None or report.state is not SnapshotState.WAITING or report.reason not in FOR_A_PERSON:
        return None
    return Problem(report.reason, messages.copy_waits(upgrade.message, of_report(report, report.reason)))


def step_events(o: Observation, step: Step | None) -> tuple[PublishEvent, ...]:
    """Return the events of a step into another phase, of another upgrade, or of an answer to a wish."""
    upgrade, stored = step.upgrade if step is not None else None, o.app.status.upgrade
    known = stored if step is None else record.applied(o.app.status, Step(adopt=step.adopt)).upgrade
    wish, first_seen = o.app.spec.upgrade.rollback_to, o.app.status.observed_generation != o.app.metadata.generation
    if upgrade is None:
        early = first_seen and known is None and o.app.metadata.deletion_timestamp is None
        return _ignored(None, wish) if early else ()
    events = _rehearsal_event(upgrade, stored)
    if known is not None and known.number == upgrade.number and known.rollback_to != upgrade.rollback_to:
        events += _ignored(upgrade, upgrade.rollback_to)
    if is_reported(upgrade, known):
        return events
    repartition = upgrade.repartition is not None and upgrade.repartition.result == RepartitionResult.COMPLETED
    # The end of a repartition is no second stop, although the record is in that phase again.
    done = repartition and upgrade.phase is UpgradePhase.STOPPING
    again = f"/{_attempts(upgrade)}" if _attempts(upgrade) > 1 else ""
    occasion = f"{upgrade.number}/{upgrade.phase.value}/{_since(stored)}{again}"
    reason = Reason.UPGRADE_REPARTITIONED if done else reason_of(upgrade)
    return (*events, PublishEvent(reason, upgrade.message, upgrade.phase in _WARNINGS, occasion))


def is_reported(upgrade: UpgradeStatus, known: UpgradeStatus | None) -> bool:
    """Return whether a record's phase was reported before it was stored, with the step that led to it.

    A further attempt at a repartition is reported, too: its pod takes the place of one that is gone, with its log.
    """
    return known is not None and _reported_of(known) == _reported_of(upgrade)


def _reported_of(upgrade: UpgradeStatus) -> tuple[int, UpgradePhase, str, int]:
    return upgrade.number, upgrade.phase, upgrade.to_spec_hash, max(1, _attempts(upgrade))


def _attempts(upgrade: UpgradeStatus) -> int:
    return upgrade.repartition.attempts if upgrade.repartition is not None else 0


def _since(known: UpgradeStatus | None) -> str:
    """Return since when it was otherwise, as stored: what recurs is published again, what is decided again is not."""
    since = known.phase_start_time if known is not None else None
    return f"{since.timestamp():.0f}" if since is not None else ""


def _ignored(upgrade: UpgradeStatus | None, wish: str) -> tuple[PublishEvent, ...]:
    """Return the event of a wish for a rollback that nothing follows from."""
    why, number = why_ignored(upgrade, wish), upgrade.number if upgrade is not None else 0
    return (PublishEvent(Reason.ROLLBACK_IGNORED, why, True, f"{number}/{wish}"),) if why else ()


def _rehearsal_event(upgrade: UpgradeStatus, known: UpgradeStatus | None) -> tuple[PublishEvent, ...]:
    """Return the event of a rehearsal that has just ended, or was left out."""
    new, old = upgrade.rehearsal, known.rehearsal if known is not None else None
    if new is None or not new.result or new == old:
        return ()
    result = RehearsalResult(new.result)
    message, warning = messages.rehearsal_event(result, new.cause, new.message), result is not RehearsalResult.PASSED
    return (PublishEvent(_REHEARSAL_REASONS[result], message, warning, f"{upgrade.number}/{_since(known)}"),)


def _progress(o: Observation, upgrade: UpgradeStatus, now: float) -> str:
    if upgrade.phase is UpgradePhase.COPYING and upgrade.rollback_snapshot is not None:
        report = record.report_of_copy(o, upgrade)
        if report is None:
            late = record.is_pending(upgrade) and record.seconds_to_hear(o, upgrade, now) >= PATIENCE
            return messages.AGENT_SILENT if late else ""
        return report.message or (messages.copy_progress(report.files, report.of_files) if report.of_files else "")
    if upgrade.phase is UpgradePhase.REHEARSING:
        return work_pod.progress(rehearsal.find_pod(o, upgrade))
    queries = record.active_queries(o)
    if upgrade.phase is not UpgradePhase.GATE or not queries:
        return ""
    wanted, lacks = o.app.spec.upgrade.stable_batches, ""
    if failed := record.failed_queries(o):
        lacks = messages.queries_failed(failed)
    elif missing := record.missing_queries(o, upgrade, now):
        lacks = messages.queries_missing(missing)
    elif waits_for_input(o, upgrade, now):
        lacks = messages.WAITS_FOR_INPUT
    return messages.gate_progress(wanted, min(wanted, *(query.committed for query in queries)), lacks)


def _check_in(o: Observation, upgrade: UpgradeStatus, now: float) -> float | None:
    """Return in how many seconds something follows from the time alone, None if nothing does."""
    seconds, spec = record.seconds_in_phase(upgrade, now), o.app.spec
    limit, left = spec.upgrade.timeout_seconds, list[float]()
    if upgrade.phase is UpgradePhase.REHEARSING:
        return rehearsal.check_rehearsal_in(o, upgrade, now)
    if upgrade.phase is UpgradePhase.COPYING:
        unknown = upgrade.rollback_snapshot is not None and record.report_of_copy(o, upgrade) is None
        # An agent that did not take the order, in a hurry or because it was slow, gets it again.
        left = [PATIENCE - record.seconds_to_hear(o, upgrade, now), ORDER_PAUSE if unknown else 0.0]
    elif upgrade.phase is UpgradePhase.GATE:
        tested, idle = record.seconds_under_test(upgrade, now), idle_in(o, upgrade, now) or 0.0
        to_start = spec.pod_start_timeout_seconds - work_pod.seconds_to_start(o.driver, seconds, now)
        left = [to_start, limit - tested, idle]
    elif upgrade.phase is UpgradePhase.FAILED and record.missing_queries(o, upgrade, now):
        left = [limit - seconds]
    return work_pod.check_in(left)
