"""Rules for messages that are to be sent to a driver, or wait for one. No I/O."""

from __future__ import annotations

from tidegate.api.lost_status import has_launched
from tidegate.api.streaming_app import Phase
from tidegate.control.rules import messages
from tidegate.control.rules.verdict import MessageVerdict, Seen, ordered_seconds_ago, takes_messages
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.reasons import AnyReason, Reason

NOT_TAKEN_PAUSE = 15.0
"""Seconds between two orders to an agent that did not take the first."""


def wait_for_app(s: Seen, now: float) -> MessageVerdict | None:
    """Wait for an application that has run."""
    name, app = s.o.app_name, s.o.app
    if s.o.app_unreadable:
        return _waiting(s, Reason.APP_UNREADABLE, messages.app_unreadable(name, s.o.namespace))
    if app is None:
        return _waiting(s, Reason.APP_NOT_FOUND, messages.app_not_found(name, s.o.namespace))
    if app.metadata.deletion_timestamp is not None:
        return _waiting(s, Reason.APP_DELETING, messages.app_deleting(name))
    return None


def wait_after_refusal(s: Seen, now: float) -> MessageVerdict | None:
    """Wait a while if the agent did not take what it was given."""
    since = ordered_seconds_ago(s.o, now)
    if not takes_messages(s.o) or s.o.driver is None or not s.o.memory.not_taken or since >= NOT_TAKEN_PAUSE:
        return None
    message = messages.order_refused(s.o.driver.name, s.o.memory.not_taken)
    left = NOT_TAKEN_PAUSE - since
    return MessageVerdict(s.waiting_phase, Health.STALLED, Reason.ORDER_REFUSED, message, wake_after=left)


def send(s: Seen, now: float) -> MessageVerdict | None:
    """Have the running driver take it, also what another driver process was given before: the log takes it once."""
    if not takes_messages(s.o) or s.o.driver is None:
        return None
    message = messages.offered(s.o.driver.name)
    return MessageVerdict(s.waiting_phase, Health.RECONCILING, Reason.OFFERED, message, sends=True)


def queued(s: Seen, under_way: int) -> MessageVerdict:
    """Return what is said of a message whose turn has not come."""
    return MessageVerdict(s.waiting_phase, Health.RECONCILING, Reason.QUEUED, messages.queued(under_way))


def wait_for_driver(s: Seen, now: float) -> MessageVerdict:
    """Wait: the application does not run, or cannot be asked."""
    name, app = s.o.app_name, s.o.app
    phase = app.status.phase if app is not None else None
    if app is not None and not has_launched(app.status):
        return _waiting(s, Reason.APP_NOT_STARTED, messages.app_not_started(name))
    if phase is Phase.SUSPENDED:
        return _waiting(s, Reason.APP_SUSPENDED, messages.app_suspended(name))
    if phase in (Phase.COMPLETED, Phase.FAILED):
        return _waiting(s, Reason.APP_NOT_RUNNING, messages.app_ended(name, phase.value))
    return _waiting(s, Reason.APP_NOT_RUNNING, messages.app_not_running(name))


def _waiting(s: Seen, reason: AnyReason, message: str) -> MessageVerdict:
    # A logged message takes effect when the application runs again.
    if s.was_offered and not s.message.status.sequence:
        message = messages.with_outcome_unknown(message)
    left = s.message.expires - s.at if s.message.expires and not s.was_offered else None
    return MessageVerdict(s.waiting_phase, Health.RECONCILING, reason, message, wake_after=left)
