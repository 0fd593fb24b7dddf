"""The phase Copying: the state is copied while the previous version runs. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import RehearsalStatus, UpgradeMode, UpgradePhase, UpgradeStatus
from tidegate.app.actions import Action, OrderSnapshots
from tidegate.app.observation import Observation
from tidegate.app.rules.pods.executors import lacks_key
from tidegate.app.rules.upgrade import messages, record
from tidegate.app.rules.upgrade.record import Step, change
from tidegate.app.rules.upgrade.rehearsal import left_out
from tidegate.app.rules.upgrade.repartition.phase import judge_copy
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import process_of
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import RepartitionObstacle
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotReport, SnapshotState

PATIENCE = 60.0
"""Seconds after which it goes on without a copy if the agent does not answer, or does not take the order."""
ORDER_PAUSE = 15.0
"""Seconds between two orders to an agent whose report does not show the first."""
MOST_AT_ONCE = 10
"""Snapshots that are ordered to go at once: a report keeps room for those that ended last."""
_TAKEN = (SnapshotState.READY, SnapshotState.FAILED, SnapshotState.COPYING)
"""What is reported of a snapshot that was taken: how that ended, and not yet that it goes."""


def is_copied_first(o: Observation, fresh: UpgradeStatus) -> bool:
    """Return whether the state is copied first.

    One that is to be repartitioned is copied as long as anything runs that would be stopped for it, and be its agent
    not heard yet: from the copy it is known whether Spark can.
    """
    driver = o.driver
    if driver is None or driver.spec_hash != fresh.from_spec_hash:
        return False
    if fresh.repartition is not None:
        return driver.running and not driver.terminating and driver.app_uid == o.app.metadata.uid
    return fresh.mode is UpgradeMode.SNAPSHOT and (record.takes_orders(o) or record.may_be_heard_yet(o))


def why_not_copied(o: Observation, fresh: UpgradeStatus) -> str:
    """Return the message that says why the state is not copied first."""
    driver = o.driver
    if fresh.rollback_snapshot is None:
        return messages.NO_ROLLBACK_SNAPSHOT
    runs = driver is not None and driver.spec_hash == fresh.from_spec_hash and driver.running and not driver.terminating
    return messages.AGENT_NOT_ASKED if runs else messages.NOTHING_COPIED


def driver_is_gone(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Go on without a copy, because the driver has ended already."""
    there = o.driver is not None and o.driver.running and not o.driver.terminating
    return None if upgrade.rollback_snapshot is None or there else _stop(o, upgrade, messages.DRIVER_GONE, now)


def state_cannot_be_repartitioned(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Refuse a repartition that Spark cannot do, by the copy's report."""
    judged = _judged(o, upgrade, now)
    return (
        change(upgrade, messages.nothing_stopped(judged.message), judged.what)
        if isinstance(judged, RepartitionObstacle)
        else None
    )


def copied_for_a_rehearsal(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Rehearse on the complete copy."""
    judged = _judged(o, upgrade, now)
    if not isinstance(judged, UpgradeStatus) or o.app.spec.upgrade.rehearsal is None:
        return None
    return change(judged, messages.REHEARSING, rehearsal=RehearsalStatus(start_time=time_from_seconds(now)))


def copied(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Stop the previous version, because its state could be read."""
    judged = _judged(o, upgrade, now)
    return _stop(o, judged, messages.COPIED, now) if isinstance(judged, UpgradeStatus) else None


def copy_was_deleted_unread(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Refuse a repartition without a report that Spark can do it."""
    deleted = _report(o, upgrade, SnapshotState.DISPOSED) is not None and record.is_pending(upgrade)
    return change(upgrade, messages.COPY_REMOVED_BEFORE_REPARTITION) if deleted else None


def copy_was_deleted(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Go on without the copy."""
    deleted = _report(o, upgrade, SnapshotState.DISPOSED) is not None
    return _stop(o, upgrade, messages.COPY_REMOVED, now) if deleted else None


def nothing_is_committed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Stop nothing: files are missing, because a stable version has committed batches."""
    report = _report(o, upgrade)
    missing = report is not None and report.reason is Reason.NOTHING_COMMITTED
    return change(upgrade, messages.NOTHING_COMMITTED) if missing else None


def copy_failed(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Stop nothing, because state that cannot be read cannot be rolled back to."""
    report = _report(o, upgrade, SnapshotState.FAILED)
    if report is None:
        return None
    return change(upgrade, messages.copy_failed(report.message), report.reason or Reason.INTERNAL_ERROR)


def order_is_refused(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Go on without a copy if the agent does not answer, or does not take the order, for too long."""
    if upgrade.rollback_snapshot is None or _report(o, upgrade) is not None:
        return None
    if record.seconds_to_hear(o, upgrade, now) < PATIENCE:
        return None
    if lacks_key(o):  # its next launch is the only way out, and that is what an upgrade is
        return _stop(o, upgrade, messages.not_orderable(repartitions=record.is_pending(upgrade)), now)
    if record.is_pending(upgrade):
        return None  # nothing is stopped for a repartition without a report that Spark can do it
    by_whom, why = o.memory.orders_refused
    refused = o.driver is not None and by_whom == process_of(o.driver)
    return _stop(o, upgrade, messages.not_ordered(why if refused else ""), now)


def _report(o: Observation, upgrade: UpgradeStatus, state: SnapshotState | None = None) -> SnapshotReport | None:
    """Return what the driver says of the copy, None if it says nothing yet, or that it is in another state."""
    report = record.report_of_copy(o, upgrade)
    if report is None or report.state is SnapshotState.UNKNOWN or not record.takes_orders(o):
        return None
    return report if state in (None, report.state) else None


def _judged(o: Observation, upgrade: UpgradeStatus, now: float) -> UpgradeStatus | RepartitionObstacle | None:
    """Return the record with what the complete copy says of a repartition, None if there is no complete one."""
    report = _report(o, upgrade, SnapshotState.READY)
    if report is None:
        return None
    return judge_copy(upgrade, report, now) if record.is_pending(upgrade) else upgrade


def _stop(o: Observation, upgrade: UpgradeStatus, message: str, now: float) -> Step:
    return change(upgrade, message, rehearsal=left_out(o, message, now))


def order_copies(o: Observation, now: float) -> tuple[Action, ...]:
    """Have the driver copy the state for an upgrade, and dispose of what earlier upgrades left."""
    upgrade, driver = o.app.status.upgrade, o.driver
    if upgrade is None or driver is None or not record.takes_orders(o):
        return ()
    given, to = o.memory.orders_given
    if to == process_of(driver) and 0 <= now - given < ORDER_PAUSE:
        return ()
    copies = upgrade.phase is UpgradePhase.COPYING and o.app.status.last_stable is not None
    snapshot, take = upgrade.rollback_snapshot if copies else None, tuple[SnapshotOrder, ...]()
    if snapshot is not None and snapshot.copy and record.report_of_copy(o, upgrade) is None:
        take = (SnapshotOrder(snapshot.copy, holders=(snapshot.copy,), image=o.app.spec.application.image),)
    # A rehearsal's files are deleted with its copy, once nobody writes there any more.
    dispose = () if o.rehearsals else tuple(name for name in upgrade.obsolete if not _goes(o, name))[:MOST_AT_ONCE]
    return (OrderSnapshots(driver, SnapshotOrders(take=take, dispose=dispose)),) if take or dispose else ()


def _goes(o: Observation, name: str) -> bool:
    report = record.find_report(o, name)
    return report is not None and report.state not in _TAKEN
