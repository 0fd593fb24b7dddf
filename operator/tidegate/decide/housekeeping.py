"""What is done beside the main decision, whatever that was: leftovers, copies, notices. No I/O."""

from __future__ import annotations

from tidegate.decide.actions import (
    Action,
    AddFinalizer,
    DeleteExecutor,
    EnsureAccess,
    EnsureAgentSecret,
    OrderSnapshots,
    PublishEvent,
    RememberTold,
)
from tidegate.decide.upgrades.step import find_report, takes_orders
from tidegate.model.streaming_app import UpgradePhase
from tidegate.observe.observation import Observation, lacks_access
from tidegate.observe.pods import PodRecord, process_of
from tidegate_spark.protocol import FINALIZER
from tidegate_spark.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState

ORDER_PAUSE = 15.0
"""Seconds between two orders to an agent whose report does not show the first."""
MOST_AT_ONCE = 10
"""Snapshots that are ordered to go at once: a report keeps room for those that ended last."""


def keep_prerequisites(o: Observation, now: float) -> tuple[Action, ...]:
    """Put back what a running driver needs: people and namespace cleaners remove things."""
    if o.driver is None:
        return ()
    actions: tuple[Action, ...] = ()
    if FINALIZER not in o.app.metadata.finalizers:
        actions = (*actions, AddFinalizer())
    if o.memory.secret_missing:
        actions = (*actions, EnsureAgentSecret())
    if lacks_access(o):
        actions = (*actions, EnsureAccess())
    return actions


def remove_leftover_executors(o: Observation, now: float) -> tuple[Action, ...]:
    """Remove executors of an earlier driver process: they end by themselves, but Spark forgot their pods."""
    return tuple(DeleteExecutor(pod) for pod in o.executors if not pod.terminating and _is_left_over(o.driver, pod))


def order_copies(o: Observation, now: float) -> tuple[Action, ...]:
    """Have the driver copy the state for an upgrade, and dispose of what earlier upgrades left."""
    upgrade, stable = o.app.status.upgrade, o.app.status.last_stable
    if upgrade is None or not takes_orders(o) or o.driver is None:
        return ()
    take: tuple[SnapshotOrder, ...] = ()
    copy = upgrade.pin.copy if upgrade.pin is not None and upgrade.phase is UpgradePhase.COPYING else ""
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


def tell_notices(o: Observation, now: float) -> tuple[Action, ...]:
    """Tell as events what the runtime wants people to know once."""
    if o.agent is None:
        return ()
    report = o.agent.report
    known = o.memory.told[1] if o.memory.told[0] == report.epoch else 0
    new = [notice for notice in report.notices if notice.sequence > known]
    if not new:
        return ()
    told = tuple(PublishEvent(n.reason, n.message, n.warning, f"{report.epoch}/{n.sequence}") for n in new)
    return (*told, RememberTold(report.epoch, max(n.sequence for n in new)))


def _is_left_over(driver: PodRecord | None, executor: PodRecord) -> bool:
    if driver is None or executor.epoch < driver.epoch:
        return True
    return executor.finished and driver.running and executor.created_at < driver.started_at


HOUSEKEEPING = (keep_prerequisites, remove_leftover_executors, order_copies, tell_notices)
