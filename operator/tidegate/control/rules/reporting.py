"""The rule for messages that the driver reports. No I/O.

The report comes from the application's process, so its reasons are checked for the form that conditions require.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tidegate.api.control_message import FINAL, ControlMessage, MessagePhase
from tidegate.control.rules import messages
from tidegate.control.rules.verdict import MessageVerdict, Seen, refers_to_its_app
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.control_protocol import DUMP_STATE, MessageReport, MessageState
from tidegate_spark.contract.reasons import Reason, reason_from
from tidegate_spark.contract.snapshot_protocol import EXPORT_FORMATS

_REASON = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


def judge_report(s: Seen, now: float) -> MessageVerdict | None:
    """Believe the driver about a message that it knows."""
    report = s.report
    if report is None or not refers_to_its_app(s):
        return None
    meaning = _MEANINGS[report.state]
    # Our own text has numbers and waits while it is in progress; the driver's has the result.
    message = (messages.reported(report) if meaning.phase in FINAL else "") or meaning.message(report)
    if report.state is MessageState.LOGGED and s.o.agent is not None and s.o.agent.control.paused:
        message = messages.with_pause(message)
    if report.state is MessageState.REJECTED and _knows_more_than_its_driver(s.message, report):
        message = messages.rejected_by_older(message)
    named = meaning.phase is MessagePhase.FAILED and _REASON.fullmatch(report.reason)
    return MessageVerdict(
        meaning.phase, meaning.health, reason_from(report.reason) if named else meaning.reason, message
    )


def _knows_more_than_its_driver(message: ControlMessage, report: MessageReport) -> bool:
    """Return whether a driver rejects the format of a dump that exists: its runtime is older than the format."""
    if message.spec.type != DUMP_STATE or report.reason != Reason.INVALID_PAYLOAD.value:
        return False
    payload = msgspec.json.decode(message.spec.payload)
    return isinstance(payload, dict) and payload.get("format") in EXPORT_FORMATS


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a state of a message in the log is to the sender."""

    phase: MessagePhase
    health: Health
    reason: Reason
    message: Callable[[MessageReport], str]


_MEANINGS: dict[MessageState, _Meaning] = {
    MessageState.LOGGED: _Meaning(MessagePhase.PUBLISHED, Health.RECONCILING, Reason.LOGGED, messages.logged),
    MessageState.IN_FORCE: _Meaning(MessagePhase.PUBLISHED, Health.RECONCILING, Reason.IN_FORCE, messages.in_effect),
    MessageState.DONE: _Meaning(MessagePhase.APPLIED, Health.READY, Reason.APPLIED, messages.in_effect),
    MessageState.FAILED: _Meaning(MessagePhase.FAILED, Health.STALLED, Reason.HANDLER_FAILED, messages.handler_failed),
    MessageState.REJECTED: _Meaning(MessagePhase.FAILED, Health.STALLED, Reason.REJECTED, messages.rejected),
    MessageState.EXPIRED: _Meaning(MessagePhase.EXPIRED, Health.STALLED, Reason.EXPIRED, messages.expired_in_log),
    MessageState.UNKNOWN: _Meaning(MessagePhase.PUBLISHED, Health.STALLED, Reason.UNKNOWN, messages.unknown_state),
    MessageState.ROLLED_BACK: _Meaning(MessagePhase.FAILED, Health.STALLED, Reason.ROLLED_BACK, messages.rolled_back),
}
