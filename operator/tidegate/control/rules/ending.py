"""Rules for messages that end without the driver, such as expired or refused ones. No I/O.

A message that was offered may be in the log, so the operator never expires it by itself.
"""

from __future__ import annotations

from tidegate.api.control_message import MessagePhase, is_too_deep, is_too_large
from tidegate.api.streaming_app import ControlSpec
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.control.rules import messages
from tidegate.control.rules.from_channel import is_reported
from tidegate.control.rules.verdict import MessageVerdict, Seen, refers_to_its_app
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.control_protocol import DEEPEST_PAYLOAD
from tidegate_spark.contract.reasons import Reason

MOST_WAITING = 1000
"""Messages to one application of which something is still to come; or to all of a namespace that are not there."""
MOST_WAITING_BYTES = 8 * 1024**2
"""Of their payloads together."""


def leave_deleted_alone(s: Seen, now: float) -> MessageVerdict | None:
    """Do nothing more about a message that somebody deletes and others' finalizers keep."""
    if s.message.metadata.deletion_timestamp is None:
        return None
    return MessageVerdict(s.waiting_phase, Health.RECONCILING, Reason.NONE, "", silent=True)


def keep_final(s: Seen, now: float) -> MessageVerdict | None:
    """Keep what has ended as it is, and let it go when it was there for long enough."""
    status = s.message.status
    if not s.message.is_final or status.phase is None:
        return None
    left = s.message.ended + retention_of(s) - s.at
    if not is_reported(s):
        return MessageVerdict(status.phase, Health.READY, Reason.NONE, "", silent=True)
    if left <= 0:
        return MessageVerdict(status.phase, Health.READY, Reason.NONE, "", retires=True, silent=True)
    return MessageVerdict(status.phase, Health.READY, Reason.NONE, "", silent=True, wake_after=left)


def give_up_with_app(s: Seen, now: float) -> MessageVerdict | None:
    """Give up if the application is gone to which it was sent: one of the same name is another one."""
    if not s.message.app_uid or s.o.app_unreadable or refers_to_its_app(s):
        return None
    message = messages.app_replaced(s.o.app_name, recreated=s.o.app is not None, offered=s.was_offered)
    return MessageVerdict(MessagePhase.FAILED, Health.STALLED, Reason.APP_REPLACED, message)


def refuse_too_large(s: Seen, now: float) -> MessageVerdict | None:
    """Refuse what no log takes."""
    if s.was_offered or not is_too_large(s.message):
        return None
    message = messages.payload_too_large()
    return MessageVerdict(MessagePhase.FAILED, Health.STALLED, Reason.PAYLOAD_TOO_LARGE, message)


def refuse_too_deep(s: Seen, now: float) -> MessageVerdict | None:
    """Refuse what a driver could not read."""
    if s.was_offered or not is_too_deep(s.message):
        return None
    message = messages.payload_too_deep(DEEPEST_PAYLOAD)
    return MessageVerdict(MessagePhase.FAILED, Health.STALLED, Reason.INVALID_PAYLOAD, message)


def refuse_too_many(s: Seen, now: float) -> MessageVerdict | None:
    """Refuse what waits behind more than anybody sends who means well: the operator keeps all of them in memory.

    What was accepted before there was this limit goes on waiting.
    """
    if s.was_offered or s.message.status.conditions:
        return None
    mib = MOST_WAITING_BYTES // 1024**2
    if _is_full(s, s.before):
        message = messages.too_many(s.o.app_name, MOST_WAITING, mib)
    elif _is_full(s, s.o.without_app + s.added):
        message = messages.too_many_without_app(s.o.app_name, s.o.namespace, MOST_WAITING, mib)
    else:
        return None
    return MessageVerdict(MessagePhase.FAILED, Health.STALLED, Reason.TOO_MANY_MESSAGES, message)


def _is_full(s: Seen, waiting: OpenCount) -> bool:
    return waiting.number >= MOST_WAITING or waiting.size + len(s.message.spec.payload) > MOST_WAITING_BYTES


def let_expire(s: Seen, now: float) -> MessageVerdict | None:
    """Give up what nobody was there to take in time."""
    expires = s.message.expires
    if s.was_offered or not expires or s.at < expires:
        return None
    ready = s.message.status.condition(Health.READY.value)
    message = messages.expired(s.message.spec.expiration_seconds, ready.message if ready is not None else "")
    return MessageVerdict(MessagePhase.EXPIRED, Health.STALLED, Reason.EXPIRED, message)


def retention_of(s: Seen) -> float:
    """Return for how many seconds a message stays after its end."""
    spec = s.o.app.spec.control if s.o.app is not None else ControlSpec()
    return float(spec.retention_seconds)
