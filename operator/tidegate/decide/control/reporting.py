"""The rule for messages of which the driver tells. No I/O.

What answers is the application's own process: its words are cut, and its reasons must be such as conditions take.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.decide.control.verdict import MessageVerdict, Seen, refers_to_its_app
from tidegate.decide.verdict import Health
from tidegate.model.control_message import FINAL, MessagePhase
from tidegate_spark.control_protocol import LONGEST_ERROR, MessageReport, MessageState, QueryAcknowledgement
from tidegate_spark.reasons import Reason, reason_from

LONGEST_WORDS = 1024
"""Characters of what a driver says of a message."""
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


def judge_report(s: Seen, now: float) -> MessageVerdict | None:
    """Believe the driver about a message that it knows."""
    report = s.report
    if report is None or not refers_to_its_app(s):
        return None
    meaning = _MEANINGS[report.state]
    told = _told(report)
    # What is under way our own words tell with figures, and what it waits for; of the end the driver knows more.
    message = told if told and meaning.phase in FINAL else meaning.words(s, report)
    named = meaning.phase is MessagePhase.FAILED and _REASON.fullmatch(report.reason)
    return MessageVerdict(
        meaning.phase, meaning.health, reason_from(report.reason) if named else meaning.reason, message
    )


def _logged(s: Seen, report: MessageReport) -> str:
    paused = " The application is paused." if s.o.agent is not None and s.o.agent.control.paused else ""
    told = _told(report)
    after = f". {told}" if told else "; it takes effect with the next batch."
    return f"Number {report.sequence} in the control log{after}{paused}"


def _in_force(s: Seen, report: MessageReport) -> str:
    if not report.queries:
        return "In force."
    by_query = [
        f"{name[:64]} since batch {it.batch}, {it.applied} of {it.ran} workers{_why_missing(it)}"
        for name, it in sorted(report.queries.items())[:8]
    ]
    more = f"; and {len(report.queries) - 8} more queries" if len(report.queries) > 8 else ""
    return f"In force: {'; '.join(by_query)}{more}. {_told(report)}".strip()[:LONGEST_WORDS]


def _why_missing(it: QueryAcknowledgement) -> str:
    return f" ({it.missing[0][:LONGEST_ERROR]})" if it.missing else ""


def _told(report: MessageReport) -> str:
    return report.message.strip()[:LONGEST_WORDS]


def _failed(s: Seen, report: MessageReport) -> str:
    first = next(((name, it.errors[0]) for name, it in sorted(report.queries.items()) if it.errors), None)
    if first is None:
        return "What it asked for could not be done; see the driver's log."
    return f"A handler failed in query {first[0][:64]}: {first[1]}"[:LONGEST_WORDS]


def _refused(s: Seen, report: MessageReport) -> str:
    return "The application does not take it: its type is unknown, or its payload is not what the type wants."


def _too_late(s: Seen, report: MessageReport) -> str:
    return "Logged, but spec.expirationSeconds had passed when its batch was planned."


def _taken_back(s: Seen, report: MessageReport) -> str:
    return "A rollback took its batch back. It is not in force any more; send another one if it should be."


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a state of a message in the log is to the sender."""

    phase: MessagePhase
    health: Health
    reason: Reason
    words: Callable[[Seen, MessageReport], str]


_MEANINGS: dict[MessageState, _Meaning] = {
    MessageState.LOGGED: _Meaning(MessagePhase.PUBLISHED, Health.RECONCILING, Reason.LOGGED, _logged),
    MessageState.IN_FORCE: _Meaning(MessagePhase.PUBLISHED, Health.RECONCILING, Reason.IN_FORCE, _in_force),
    MessageState.DONE: _Meaning(MessagePhase.APPLIED, Health.READY, Reason.APPLIED, _in_force),
    MessageState.FAILED: _Meaning(MessagePhase.FAILED, Health.STALLED, Reason.HANDLER_FAILED, _failed),
    MessageState.REJECTED: _Meaning(MessagePhase.FAILED, Health.STALLED, Reason.REJECTED, _refused),
    MessageState.EXPIRED: _Meaning(MessagePhase.EXPIRED, Health.STALLED, Reason.EXPIRED, _too_late),
    MessageState.ROLLED_BACK: _Meaning(MessagePhase.FAILED, Health.STALLED, Reason.ROLLED_BACK, _taken_back),
}
