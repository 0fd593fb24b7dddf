"""The state is copied while the previous version runs: until that is done, or found not to be possible. No I/O."""

from __future__ import annotations

from tidegate.decide.upgrades import messages
from tidegate.decide.upgrades.rehearsing import begin_rehearsal, left_out
from tidegate.decide.upgrades.repartitioning import is_pending, judge_copy
from tidegate.decide.upgrades.step import Step, find_report, moved, seconds_to_hear, takes_orders
from tidegate.model.streaming_app import UpgradePhase, UpgradeStatus
from tidegate.observe.observation import Observation
from tidegate.observe.pods import process_of
from tidegate_spark.reasons import AnyReason, Reason
from tidegate_spark.repartition_protocol import Unfit
from tidegate_spark.snapshot_protocol import SnapshotReport, SnapshotState

PATIENCE = 60.0
"""Seconds after which it goes on without a copy if the agent does not answer, or does not take the order."""


def follow_copy(o: Observation, now: float) -> Step | None:
    """Stop the previous version once its state is copied; refuse the upgrade if it cannot be read."""
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase is not UpgradePhase.COPYING or upgrade.rollback_snapshot is None:
        return None
    driver = o.driver
    if driver is None or driver.terminating or not driver.running:
        return _stop(o, upgrade, Reason.DRIVER_GONE, messages.DRIVER_GONE, now)
    report = find_report(o, upgrade.rollback_snapshot.copy)
    if report is not None and report.state is not SnapshotState.UNKNOWN and takes_orders(o):
        return _judge(o, upgrade, report, now)
    if seconds_to_hear(o, upgrade, now) < PATIENCE or is_pending(upgrade):
        return None  # what runs is not stopped for a repartition of which nobody knows whether Spark can do it
    by_whom, why = o.memory.orders_refused
    message = messages.not_ordered(why if by_whom == process_of(driver) else "")
    return _stop(o, upgrade, Reason.ORDER_REFUSED, message, now)


def _judge(o: Observation, upgrade: UpgradeStatus, report: SnapshotReport, now: float) -> Step | None:
    if report.state is SnapshotState.READY:
        return _judge_complete(o, upgrade, report, now)
    if report.state is SnapshotState.DISPOSED and is_pending(upgrade):
        message = messages.COPY_REMOVED_BEFORE_REPARTITION
        return Step(moved(upgrade, UpgradePhase.REFUSED, Reason.COPY_REMOVED, message, now), warning=True)
    if report.state is SnapshotState.DISPOSED:
        return _stop(o, upgrade, Reason.COPY_REMOVED, messages.COPY_REMOVED, now)
    if report.reason is Reason.NOTHING_COMMITTED:
        message = messages.NOTHING_COMMITTED
        return Step(moved(upgrade, UpgradePhase.REFUSED, Reason.STATE_MISSING, message, now), warning=True)
    if report.state is SnapshotState.FAILED:
        reason = report.reason or Reason.INTERNAL_ERROR
        message = messages.copy_failed(report.message)
        return Step(moved(upgrade, UpgradePhase.REFUSED, reason, message, now), warning=True)
    return None


def _judge_complete(o: Observation, upgrade: UpgradeStatus, report: SnapshotReport, now: float) -> Step:
    if is_pending(upgrade):
        judged = judge_copy(upgrade, report, now)
        if isinstance(judged, Unfit):
            message = messages.nothing_stopped(judged.message)
            return Step(moved(upgrade, UpgradePhase.REFUSED, judged.what, message, now), warning=True)
        upgrade = judged
    if o.app.spec.upgrade.rehearsal is not None:
        return begin_rehearsal(upgrade, now)
    return _stop(o, upgrade, Reason.COPIED, messages.COPIED, now)


def _stop(o: Observation, upgrade: UpgradeStatus, reason: AnyReason, message: str, now: float) -> Step:
    rehearsal = left_out(o, message, now)
    return Step(moved(upgrade, UpgradePhase.STOPPING, reason, message, now, rehearsal=rehearsal))
