"""The state is copied while the previous version runs: until that is done, or found not to be possible. No I/O."""

from __future__ import annotations

from tidegate.decide.actions import Action, OrderSnapshots
from tidegate.decide.upgrades import messages
from tidegate.decide.upgrades.record import Step, find_report, is_pending, moved, seconds_to_hear, takes_orders
from tidegate.decide.upgrades.rehearsal import begin_rehearsal, left_out
from tidegate.decide.upgrades.repartition import judge_copy
from tidegate.model.streaming_app import UpgradePhase, UpgradeStatus
from tidegate.observe.observation import Observation
from tidegate.observe.pods import process_of
from tidegate_spark.reasons import AnyReason, Reason
from tidegate_spark.repartition_protocol import Unfit
from tidegate_spark.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotReport, SnapshotState

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


ORDER_PAUSE = 15.0
"""Seconds between two orders to an agent whose report does not show the first."""
MOST_AT_ONCE = 10
"""Snapshots that are ordered to go at once: a report keeps room for those that ended last."""


def order_copies(o: Observation, now: float) -> tuple[Action, ...]:
    """Have the driver copy the state for an upgrade, and dispose of what earlier upgrades left."""
    upgrade, stable = o.app.status.upgrade, o.app.status.last_stable
    if upgrade is None or not takes_orders(o) or o.driver is None:
        return ()
    take: tuple[SnapshotOrder, ...] = ()
    copy = (
        upgrade.rollback_snapshot.copy
        if upgrade.rollback_snapshot is not None and upgrade.phase is UpgradePhase.COPYING
        else ""
    )
    if copy and stable is not None and find_report(o, copy) is None:
        take = (SnapshotOrder(copy, holders=(copy,), image=o.app.spec.application.image),)
    going = tuple(name for name in upgrade.obsolete if not _is_being_disposed_of(o, name))[:MOST_AT_ONCE]
    # What a rehearsal writes goes with the copy that it began with: not before nobody writes there any more.
    dispose = going if not o.rehearsals else ()
    given, to = o.memory.orders_given
    lately = to == process_of(o.driver) and 0 <= now - given < ORDER_PAUSE
    if lately or not (take or dispose):
        return ()
    return (OrderSnapshots(o.driver, SnapshotOrders(take=take, dispose=dispose)),)


def _is_being_disposed_of(o: Observation, name: str) -> bool:
    report = find_report(o, name)
    # Of one that was taken, what is told is how that ended.
    taken = (SnapshotState.READY, SnapshotState.FAILED, SnapshotState.COPYING)
    return report is not None and report.state not in taken
