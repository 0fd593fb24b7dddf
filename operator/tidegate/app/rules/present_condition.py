"""Conditions that are present only while they are True, and their events. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import Condition
from tidegate.app.observation import Observation
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.conditions import transition_time
from tidegate_spark.contract.reasons import Reason


def present_condition(o: Observation, kind: str, reason: Reason, message: str, now: float) -> tuple[Condition, ...]:
    """Return a condition apart from Ready, Reconciling and Stalled: the application is as well as it was.

    Args:
        o: everything that is known.
        kind: the condition's type.
        reason: the condition's.
        message: what is so; empty if it is not, and there is no condition then.
        now: seconds since the epoch.
    """
    if not message:
        return ()
    return (
        Condition(
            type=kind,
            status="True",
            reason=reason,
            message=message,
            observed_generation=o.app.metadata.generation,
            last_transition_time=transition_time(o.app.status.condition(kind), "True", now),
        ),
    )


def present_event(o: Observation, kind: str, reason: Reason, message: str, occasion: str) -> tuple[PublishEvent, ...]:
    """Return the warning that belongs to such a condition: when it begins, or has another message.

    Args:
        o: everything that is known.
        kind: the condition's type.
        reason: the condition's.
        message: as for :func:`present_condition`.
        occasion: as of the event.
    """
    known = o.app.status.condition(kind)
    if not message or (known is not None and known.message == message):
        return ()
    return (PublishEvent(reason, message, True, occasion),)
