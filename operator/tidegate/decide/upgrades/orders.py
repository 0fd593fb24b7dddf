"""What an upgrade orders from the agent of the driver that runs: its copy, and the end of what others left. No I/O."""

from __future__ import annotations

from tidegate.decide.actions import Action, OrderSnapshots
from tidegate.decide.upgrades.step import find_report, takes_orders
from tidegate.model.streaming_app import UpgradePhase
from tidegate.observe.observation import Observation
from tidegate.observe.pods import process_of
from tidegate_spark.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState

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
