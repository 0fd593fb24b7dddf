"""decide_snapshot(observation, now) -> plan: two tables of rules, read from top to bottom.

Pure: no I/O, no clock, no randomness; the same observation and time give the same plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tidegate.api.stream_snapshot import StreamSnapshotStatus
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.table import earliest, first_verdict
from tidegate.snapshots.actions import SnapshotAction, SnapshotPlan, WriteSnapshotStatus
from tidegate.snapshots.observation import SnapshotObservation
from tidegate.snapshots.rules import disposing, exporting, purged, refusing, retention, taking, verifying
from tidegate.snapshots.rules.status import build_snapshot_status, snapshot_write_is_due_in
from tidegate.snapshots.rules.verdict import SnapshotVerdict

SnapshotRule: TypeAlias = Callable[[SnapshotObservation, float], SnapshotVerdict | None]

DISPOSING_RULES: tuple[SnapshotRule, ...] = (
    disposing.leave_released_alone,
    disposing.stop_taking,
    disposing.release_import,
    disposing.release_what_never_was,
    disposing.keep_what_is_retained,
    disposing.cancel,
    disposing.wait_for_forks,
    disposing.leave_with_its_storage,
    *disposing.REMOVING_RULES,
)
"""For a resource that somebody deleted."""

TAKING_RULES: tuple[SnapshotRule, ...] = (
    retention.let_expire,
    purged.find_purged,
    exporting.write_out,
    exporting.remove_leftover,
    verifying.read_back,
    verifying.remove_leftover,
    taking.find_damage,
    taking.keep_final,
    refusing.refuse_too_many,
    taking.adopt_import,
    taking.refuse_another_app,
    taking.wait_for_app,
    taking.judge_report,
    taking.judge_pod,
    taking.order_from_agent,
    taking.begin_pod,
    taking.wait_for_driver,
)
"""For every other one. The first rule that applies decides; the last one always does."""


def decide_snapshot(observation: SnapshotObservation, now: float) -> SnapshotPlan:
    """Return what to do about one snapshot.

    Args:
        observation: everything that is known.
        now: seconds since the epoch.
    """
    deleted = observation.snapshot.metadata.deletion_timestamp is not None
    name, verdict = first_verdict(DISPOSING_RULES if deleted else TAKING_RULES, observation, now)
    if verdict.silent:
        return SnapshotPlan(name, verdict.reason, verdict.message, verdict.before + verdict.after, verdict.wake_after)
    status = build_snapshot_status(observation, verdict, now)
    due = snapshot_write_is_due_in(observation, status, now)
    actions: tuple[SnapshotAction, ...] = verdict.before
    if due == 0.0:
        actions = (*actions, WriteSnapshotStatus(status))
    actions += verdict.after + _announce(observation, verdict, status)
    wake_after = earliest(verdict.wake_after, due or None)
    return SnapshotPlan(name, verdict.reason, verdict.message, actions, wake_after)


def _announce(
    observation: SnapshotObservation, verdict: SnapshotVerdict, status: StreamSnapshotStatus
) -> tuple[SnapshotAction, ...]:
    kind = Health.READY.value
    old, new = observation.snapshot.status.condition(kind), status.condition(kind)
    assert new is not None
    if old is not None and old.reason == new.reason and observation.snapshot.status.phase == status.phase:
        return ()
    occasion = f"{new.last_transition_time.timestamp():.0f}"
    return (PublishEvent(verdict.reason, verdict.message, verdict.health is Health.STALLED, occasion),)
