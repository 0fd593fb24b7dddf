"""The status and condition of the control channel. No I/O."""

from __future__ import annotations

from tidegate.api.status.status import ControlStatus
from tidegate.api.streaming_app import ChannelType, Condition, Phase
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.conditions import transition_time
from tidegate_spark.contract.control_protocol import ChannelReport, MessageState
from tidegate_spark.contract.reasons import Reason

CONTROL_CHANNEL = "ControlChannelConnected"
"""Type of the condition."""
_AT_REST = frozenset({Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED, Phase.DELETING})


def channel_condition(o: Observation, verdict: Verdict, now: float) -> tuple[Condition, ...]:
    """Return the condition of the channel; none if the application has none but ControlMessages.

    It is apart from the other three: an application whose broker is away is as ready as it was.
    """
    if not o.app.spec.control.channel.is_read:
        return ()
    known, report = o.app.status.condition(CONTROL_CHANNEL), _report(o)
    if report is None and known is not None and verdict.phase not in _AT_REST and not verdict.launch:
        return (known,)
    status, reason, message = _state(report)
    return (
        Condition(
            type=CONTROL_CHANNEL,
            status=status,
            reason=reason,
            message=message,
            observed_generation=o.app.metadata.generation,
            last_transition_time=transition_time(known, status, now),
        ),
    )


def control_status(o: Observation) -> ControlStatus | None:
    """Return what came through the channel; what was known stays while there is no report."""
    if not o.app.spec.control.channel.is_read:
        return None
    report = _report(o)
    if report is None:
        return o.app.status.control
    ended = report.ended
    return ControlStatus(
        channel=report.kind,
        received=report.received,
        applied=ended.get(MessageState.DONE.value, 0),
        failed=ended.get(MessageState.FAILED.value, 0),
        rejected=ended.get(MessageState.REJECTED.value, 0),
        expired=ended.get(MessageState.EXPIRED.value, 0),
        rolled_back=ended.get(MessageState.ROLLED_BACK.value, 0),
    )


def _report(o: Observation) -> ChannelReport | None:
    return o.agent.report.control.channel if o.agent is not None else None


def _state(report: ChannelReport | None) -> tuple[str, str, str]:
    """Return status, reason and message of the condition."""
    if report is None:
        return "Unknown", Reason.NO_DRIVER, messages.CHANNEL_UNREAD
    if report.connected:
        return (
            "True",
            report.reason or Reason.CONNECTED,
            report.message or messages.channel_read("" if report.kind == ChannelType.STORAGE.value else report.kind),
        )
    if not report.reason:
        return "Unknown", Reason.CONNECTING, messages.channel_connecting(report.kind)
    return "False", report.reason, messages.channel_lost(report.message)
