"""Rules for channel messages that need the operator: each gets a ControlMessage, and the driver its result. No I/O.

They are logged before they have a resource, so they are never sent to a driver. The driver reports each until it knows
the result, so every step can be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.api.control_message import APPLIED, ControlMessageStatus, MessagePhase
from tidegate.control.builders.channel_message import build_channel_message
from tidegate.control.observation import ControlObservation
from tidegate.control.rules import messages
from tidegate.control.rules.creations import created_now
from tidegate.control.rules.verdict import MessageVerdict, Seen, refers_to_its_app, takes_messages
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.control_protocol import (
    CLUSTER_TYPES,
    LONGEST_ASKED,
    MOST_ASKED,
    AskedMessage,
    MessageEnd,
    MessageState,
)
from tidegate_spark.contract.reasons import AnyReason, Reason, reason_from

_ID = re.compile("[0-9a-f]{32}")


def asked_of(o: ControlObservation) -> tuple[AskedMessage, ...]:
    """Return the messages that a driver reports, as many as one may: what answers is the application's own process."""
    reported = (o.agent.control.asked or ()) if o.agent is not None else ()
    fit = (it for it in reported if _ID.fullmatch(it.report.id) and it.type in CLUSTER_TYPES)
    return tuple(it for it in fit if len(it.payload.encode()) <= LONGEST_ASKED)[:MOST_ASKED]


def to_be_made(o: ControlObservation, now: float) -> tuple[list[Mapping[str, Any]], float | None]:
    """Return the resources of messages that have none yet, and in how many seconds one is tried again."""
    app = o.app
    if app is None or app.metadata.deletion_timestamp is not None:
        return [], None
    known = {message.log_id for message in o.messages} | o.memory.refused.keys()
    new = {it.report.id: it for it in asked_of(o) if it.report.id not in known}
    chosen, left = created_now(o.memory.not_created, new, now)
    return [build_channel_message(it, app) for name, it in new.items() if name in chosen], left


def ends_of(o: ControlObservation, statuses: Iterable[tuple[str, ControlMessageStatus]]) -> tuple[MessageEnd, ...]:
    """Return the results for the driver: of messages whose end is recorded, and of those that can have none.

    Args:
        o: everything that is known.
        statuses: log id and status of each message that has ended.
    """
    ended = dict(statuses)
    names = [it.report.id for it in asked_of(o)]
    reported = [_end(name, ended[name]) for name in names if name in ended]
    return (*reported, *(_refused(name, o.memory.refused[name]) for name in names if name in o.memory.refused))


def is_reported(s: Seen) -> bool:
    """Return whether the driver knows its end: before that its resource may not go, or it would be made again."""
    if not s.message.is_from_channel or not refers_to_its_app(s):
        return True
    asked = s.o.agent.control.asked if s.o.agent is not None else None
    return asked is not None and all(it.report.id != s.message.log_id for it in asked)


def await_report(s: Seen, now: float) -> MessageVerdict | None:
    """Wait for the driver to report it again; one that runs and does not know of it never will."""
    if not s.message.is_from_channel:
        return None
    if takes_messages(s.o) and is_reported(s):
        return MessageVerdict(MessagePhase.FAILED, Health.STALLED, Reason.MESSAGE_LOST, messages.lost())
    message = messages.from_channel(s.o.app_name)
    return MessageVerdict(s.waiting_phase, Health.RECONCILING, Reason.APP_NOT_RUNNING, message)


def _end(name: str, status: ControlMessageStatus) -> MessageEnd:
    condition = status.condition(APPLIED)
    reason, message = (condition.reason, condition.message) if condition is not None else ("", "")
    if status.phase is MessagePhase.APPLIED:
        return MessageEnd(name, MessageState.DONE, message=message, results=dict(status.results))
    return MessageEnd(name, _state(status.phase, reason_from(reason)), reason, message, dict(status.results))


def _state(phase: MessagePhase | None, reason: AnyReason) -> MessageState:
    if phase is MessagePhase.EXPIRED:
        return MessageState.EXPIRED
    return MessageState.ROLLED_BACK if reason == Reason.ROLLED_BACK else MessageState.FAILED


def _refused(name: str, message: str) -> MessageEnd:
    return MessageEnd(name, MessageState.FAILED, Reason.MESSAGE_REFUSED, messages.resource_refused(message))
