"""The phase Repartitioning: between stop and launch a pod makes a lineage with another number of partitions. No I/O.

Until that lineage is reported whole the old one is untouched, and on failure the previous version goes on in it. Each
attempt records an epoch and a lineage of its own before its pod exists.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from msgspec.structs import replace

from tidegate.api.spec_hash import recorded_values
from tidegate.api.streaming_app import (
    Phase,
    RepartitionProgress,
    RepartitionResult,
    RepartitionStatus,
    StableSpec,
    StreamingAppSpec,
    StreamingAppStatus,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.app.observation import Observation
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.upgrade import messages, record
from tidegate.app.rules.upgrade.record import Step, change
from tidegate.app.rules.upgrade.repartition import messages as texts
from tidegate.app.rules.upgrade.repartition.pod import find_pod, outcome_of, report_of
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.faults import Problem
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import RepartitionObstacle, find_obstacle, needs_repartition
from tidegate_spark.contract.snapshot_protocol import SnapshotReport

MOST_DEFERRALS = 2
"""How often a repartition that found a batch uncommitted is begun again by itself: each time costs a stop."""
MOST_ATTEMPTS = 3
"""Pods that may be lost, or find the storage away, before the previous version goes on."""
_NOT_KNOWN_YET = (*record.BEFORE_A_LAUNCH, UpgradePhase.ROLLING_BACK)
"""Phases in which the state that the coming driver, or the one that is filling it, will have is not in the status."""


def wanted_repartition(o: Observation) -> RepartitionStatus | None:
    """Return the record of a repartition that the spec asks for, None if it asks for none."""
    status, spec = o.app.status, o.app.spec
    before, wanted = status.state_partitions, spec.state.partitions
    if not before or before == wanted or spec.upgrade.mode is UpgradeMode.STATELESS:
        return None
    if status.last_stable is None or not is_another_asked_for(spec, status.last_stable):
        return None  # there is no state yet, or no version that could go on if that failed
    return RepartitionStatus(partitions=wanted, previous_partitions=before)


def state_of_newer(o: Observation, upgrade: UpgradeStatus) -> tuple[RepartitionStatus | None, int]:
    """Return which repartition comes before the launch of a version that takes another one's place, and its lineage.

    A lineage that was made for the previous one, and in which nothing has run, serves if the number is the same.
    """
    if upgrade.mode is UpgradeMode.STATELESS:
        return None, upgrade.lineage
    known, wanted = upgrade.repartition, wanted_repartition(o)
    done = known is not None and known.result == RepartitionResult.COMPLETED and upgrade.lineage == known.lineage
    if known is not None and done and wanted is not None and wanted.partitions == known.partitions:
        return known, upgrade.lineage
    return wanted, lineage_of(o)


def is_another_asked_for(spec: StreamingAppSpec, stable: StableSpec) -> bool:
    """Return whether the spec's number is another one than the stable version asked for, which can divide its state.

    State that it keeps in other partitions, such as a snapshot's, is not divided because of another image. What wrote
    it divides it, and goes on if that fails: not where a secret of that version is gone, which is recorded nowhere.
    """
    values = recorded_values(stable)
    # An earlier operator did not store the number.
    is_another = bool(values) and values.get("state.partitions") != spec.state.partitions
    return is_another and record.version_held(spec, stable) is not None


def kept_event(o: Observation, status: StreamingAppStatus) -> tuple[PublishEvent, ...]:
    """Return the event of a launch, which writes ``status``, on state in another number of partitions than asked."""
    wanted, kept = o.app.spec.state.partitions, status.state_partitions
    if not kept or kept == wanted:
        return ()
    return (PublishEvent(Reason.STATE_PARTITIONS_KEPT, texts.number_kept(kept, wanted), True, f"{status.epoch}"),)


def kept_condition(o: Observation, verdict: Verdict) -> Verdict:
    """Return the verdict with the number of partitions where a launched version asks for another: its event fades."""
    status, wanted = o.app.status, o.app.spec.state.partitions
    if status.state_partitions in (0, wanted) or status.applied_spec_hash != o.spec_hash:
        return verdict
    if verdict.phase not in (Phase.STARTING, Phase.RUNNING) or verdict.launch:
        return verdict
    if status.upgrade is not None and status.upgrade.phase in _NOT_KNOWN_YET:
        return verdict
    message = messages.beside(verdict.message, texts.number_kept(status.state_partitions, wanted))
    return dataclasses.replace(verdict, message=message)


def judge_copy(upgrade: UpgradeStatus, report: SnapshotReport, now: float) -> UpgradeStatus | RepartitionObstacle:
    """Return the record with what the report of the complete copy says of its repartition, or why there can be none."""
    known = upgrade.repartition
    reported = {name: query.state for name, query in report.queries.items() if query.state is not None}
    if known is None or len(reported) < len(report.queries):
        return upgrade  # an earlier runtime does not report it; the pod finds out
    if not needs_repartition(reported, known.partitions):
        return _settled(upgrade, RepartitionResult.NOT_NEEDED, now, message=texts.nothing_to_do(known.partitions))
    return find_obstacle(reported, known.partitions, report.spark_version) or upgrade


def driver_has_stopped(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record an attempt, with an epoch of its own, once the previous version has ended."""
    known = upgrade.repartition if record.is_pending(upgrade) else None
    if known is None or o.driver is not None or o.app.spec.suspend:
        return None
    return _attempt(o, upgrade, known, Problem(Reason.STOPPED, texts.STARTED), now)


def application_is_suspended(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Remove the pod of a suspended application; the repartition starts again when it resumes.

    The time of a suspension is not the repartition's.
    """
    known = upgrade.repartition
    if known is None or not o.app.spec.suspend:
        return None
    later = replace(known, epoch=0, lineage=0, pod_uid="", attempts=0, progress=None, start_time=None)
    return change(upgrade, texts.SUSPENDED, repartition=later)


def succeeded(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Launch the new version in the new lineage, which is whole."""
    known, outcome = upgrade.repartition, outcome_of(o, upgrade, now)
    if known is None or outcome is None or outcome.end is None:
        return None
    queries, rows = outcome.end.queries, outcome.end.rows
    message = texts.done(known.lineage, known.partitions, known.from_partitions, rows)
    # Spark makes a batch of it, of each query whose state was repartitioned.
    last = max((it.batch + (it.partitions not in (0, known.partitions)) for it in queries.values()), default=None)
    done = _settled(upgrade, RepartitionResult.COMPLETED, now, message=outcome.message, rows=rows, batch=last)
    # The lineage was made of the rollback snapshot, so that one is complete.
    whole = record.with_complete_snapshot(done, {name: it.batch for name, it in queries.items()})
    return change(whole, message, lineage=known.lineage)


def another_attempt_may_do(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Try again with another pod, epoch and lineage."""
    known, outcome = upgrade.repartition, outcome_of(o, upgrade, now)
    if known is None or outcome is None or not outcome.again or known.attempts >= MOST_ATTEMPTS:
        return None
    follows = texts.another_attempt(outcome.message, known.attempts + 1, MOST_ATTEMPTS)
    return _attempt(o, upgrade, known, Problem(outcome.what, follows), now)


def a_batch_is_to_be_finished(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Let the previous version finish its last batch; then the upgrade starts again."""
    known, outcome = upgrade.repartition, outcome_of(o, upgrade, now)
    if known is None or outcome is None or outcome.what is not Reason.BATCH_UNCOMMITTED:
        return None
    number, batches = known.deferrals + 1, o.app.spec.upgrade.stable_batches
    if number > MOST_DEFERRALS:
        return None
    message = texts.deferred(outcome.message, batches, number, MOST_DEFERRALS)
    later = replace(upgrade, repartition=replace(known, deferrals=number))
    return not_repartitioned(o, later, Problem(outcome.what, outcome.message), message, now)


def failed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Let the previous version continue."""
    outcome = outcome_of(o, upgrade, now)
    if outcome is None or outcome.end is not None:
        return None
    return not_repartitioned(o, upgrade, Problem(outcome.what, outcome.message), texts.failed(outcome.message), now)


def pod_is_there(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record the uid of an attempt's pod, which distinguishes a lost pod from one that never existed."""
    known = upgrade.repartition
    pod = find_pod(o, known) if known is not None and not known.pod_uid else None
    return change(upgrade, repartition=replace(known, pod_uid=pod.uid)) if known and pod else None


def with_progress(o: Observation) -> UpgradeStatus | None:
    """Return the upgrade's record with how far the pod is; what it said last stays while it says nothing."""
    upgrade = o.app.status.upgrade
    known = upgrade.repartition if upgrade is not None else None
    if upgrade is None or known is None or upgrade.phase is not UpgradePhase.REPARTITIONING:
        return upgrade
    reported = report_of(o, known)
    if reported is None:
        return upgrade
    progress = RepartitionProgress(
        files=reported.files,
        of_files=reported.of_files,
        bytes=reported.bytes,
        of_bytes=reported.of_bytes,
        rows=reported.rows,
    )
    return replace(upgrade, repartition=replace(known, progress=progress))


def without_progress(upgrade: UpgradeStatus | None) -> UpgradeStatus | None:
    """Return the record without how far a pod is: all that has to be written at once."""
    if upgrade is None or upgrade.repartition is None:
        return upgrade
    return replace(upgrade, repartition=replace(upgrade.repartition, progress=None))


def starts_again(upgrade: UpgradeStatus) -> bool:
    """Return whether an upgrade was refused for now, and begins again by itself when the previous version is stable."""
    return upgrade.phase is UpgradePhase.REFUSED and upgrade.reason == Reason.STATE_PARTITIONS_KEPT


def not_repartitioned(o: Observation, upgrade: UpgradeStatus, why: Problem, message: str, now: float) -> Step:
    """Have the previous version go on in the lineage where it stopped; ``why`` becomes the repartition's result."""
    failed = _settled(upgrade, RepartitionResult.FAILED, now, cause=why.reason, message=why.message)
    return change(record.without_rollback_snapshot(failed), message, why.reason, lineage=lineage_of(o))


def _attempt(o: Observation, upgrade: UpgradeStatus, known: RepartitionStatus, why: Problem, now: float) -> Step:
    assert upgrade.rollback_snapshot is not None  # each version that is divided has one: it was stable, and stopped
    epoch, lineage = o.app.status.epoch + 1, record.next_lineage(o)
    attempt = replace(
        known,
        snapshot_id=upgrade.rollback_snapshot.id,
        epoch=epoch,
        lineage=lineage,
        pod_uid="",
        attempts=known.attempts + 1,
        progress=None,
        start_time=known.start_time or time_from_seconds(now),
    )
    return change(upgrade, why.message, why.reason, uses_epoch=epoch, repartition=attempt, last_lineage=lineage)


def _settled(upgrade: UpgradeStatus, result: RepartitionResult, now: float, **fields: Any) -> UpgradeStatus:
    assert upgrade.repartition is not None
    ended = time_from_seconds(now)
    settled = replace(upgrade.repartition, result=result.value, completion_time=ended, progress=None, **fields)
    return replace(upgrade, repartition=settled)
