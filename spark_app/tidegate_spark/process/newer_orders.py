"""Messages about an order of a newer operator, which is refused whole. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.json_form import NewerOrderError, from_json
from tidegate_spark.contract.protocol import PROTOCOL
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders, SnapshotReport, SnapshotState


def why_refused(error: NewerOrderError) -> str:
    """Return which part of the order is not known, and which side is to be upgraded."""
    return f"{error}; this runtime (protocol {PROTOCOL}) is older than who gave the order: upgrade the runtime"


def refused_reports(text: str, error: NewerOrderError) -> tuple[SnapshotReport, ...]:
    """Return what a snapshot pod reports of orders none of which it carries out.

    Args:
        text: the orders as JSON.
        error: what is not known in them.

    Raises:
        ValueError: as far as they are known here, they are no orders either.
    """
    orders = from_json(SnapshotOrders, text)
    ids = [order.id for order in orders.take]
    ids += [*orders.dispose, *(order.id for order in orders.release)]
    ids += [order.id for order in orders.adopt]
    ids += [order.id for order in orders.verify]
    ids += [order.id for order in orders.export]
    message = f"{why_refused(error)}."
    return tuple(
        SnapshotReport(each, SnapshotState.FAILED, Reason.ORDER_REFUSED, message) for each in dict.fromkeys(ids)
    )
