"""Which messages go to the driver now, in which order, and which it may forget. No I/O.

What is sent is always a prefix of the messages that are not known to be logged. The log takes each id once, so sending
again is safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidegate.api.control_message import ControlMessage, payload_text
from tidegate.control.actions import GiveMessages
from tidegate.control.observation import ControlObservation
from tidegate.control.rules.verdict import Seen, ordered_seconds_ago, takes_messages
from tidegate.control.rules.waiting import NOT_TAKEN_PAUSE
from tidegate_spark.contract.control_protocol import LARGEST_CONTROL_ORDERS, ControlOrder, ControlOrders, MessageEnd

ORDER_PAUSE = 5.0
"""Seconds between two orders to an agent whose report does not show the first: the next report is on its way."""
FORGET_PAUSE = 60.0
"""Seconds between two orders to forget."""
MOST_AT_ONCE = 64
"""Messages in one body."""
MOST_UNDER_WAY = 256
"""Messages of one application that are not finished and that its driver reports: a report has a size, too."""
MOST_FORGOTTEN = 512
_FRAME = 64 * MOST_FORGOTTEN
"""Bytes of a body that are not its messages."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What is given to the driver now."""

    chosen: frozenset[str] = frozenset()
    """Uids of the messages whose turn it is, whether they are given just now or were a moment ago."""
    under_way: int = 0
    give: GiveMessages | None = None
    wake_after: float | None = None


def choose(
    o: ControlObservation, line: Sequence[Seen], ended: frozenset[str], ends: tuple[MessageEnd, ...], now: float
) -> Dispatch:
    """Return what is to be given.

    Args:
        o: everything that is known.
        line: messages that are to be given, in order.
        ended: uids of messages whose end is written down, or will be before anything is given.
        ends: what the driver is to know of messages from a channel.
        now: seconds since the epoch.
    """
    if not takes_messages(o) or o.driver is None or o.agent is None:
        return Dispatch()
    unfinished = {m.metadata.uid for m in o.messages if m.metadata.deletion_timestamp is None} - ended
    reported = [report.id for report in o.agent.control.messages]
    under_way = sum(1 for name in reported if name in unfinished)
    taken = _FRAME + len(msgspec.json.encode(ends))
    orders = _fitting([s.message for s in line], MOST_UNDER_WAY - under_way, taken)
    # A message without a resource was deleted: nobody reads its result.
    forget = tuple(name for name in reported if name not in unfinished)[:MOST_FORGOTTEN]
    chosen = frozenset(order.id for order in orders)
    if not chosen and not forget and not ends:
        return Dispatch(under_way=under_way)
    left = _pause_left(o, chosen, frozenset(forget), frozenset(end.id for end in ends), now)
    if left > 0:
        return Dispatch(chosen, under_way, wake_after=left)
    give = GiveMessages(o.driver, ControlOrders(orders, forget, ends))
    return Dispatch(chosen, under_way, give, ORDER_PAUSE if chosen or ends else FORGET_PAUSE)


def _pause_left(
    o: ControlObservation, chosen: frozenset[str], forget: frozenset[str], reported: frozenset[str], now: float
) -> float:
    since = ordered_seconds_ago(o, now)
    if o.memory.not_taken:
        return NOT_TAKEN_PAUSE - since
    if not (chosen <= o.memory.ordered and forget <= o.memory.forgotten and reported <= o.memory.reported):
        return 0.0
    return (ORDER_PAUSE if chosen or reported else FORGET_PAUSE) - since


def _fitting(line: Sequence[ControlMessage], room: int, size: int = _FRAME) -> tuple[ControlOrder, ...]:
    """Return as much of the head of the line as one body may hold; ``size``: bytes of what else is in it."""
    orders: list[ControlOrder] = []
    for message in line[: max(0, min(MOST_AT_ONCE, room))]:
        order = build_order(message)
        size += len(msgspec.json.encode(order)) + 1
        if size > LARGEST_CONTROL_ORDERS:
            break
        orders.append(order)
    return tuple(orders)


def build_order(message: ControlMessage) -> ControlOrder:
    """Return a message as the driver gets it."""
    namespace, name = message.key
    return ControlOrder(
        message.metadata.uid,
        message.spec.type,
        payload_text(message),
        message.created,
        message.expires,
        f"{namespace}/{name}",
    )
