"""Reports excluded periods of the autoscaler whose schedule has no times. No I/O.

The API server refuses nearly all of them. The autoscaler works without the others; a condition names them.
"""

from __future__ import annotations

from tidegate.api.streaming_app import Condition, StreamingApp
from tidegate.api.values.times import fault_of
from tidegate.app.observation import Observation
from tidegate.app.rules.live import autoscaling_messages
from tidegate.app.rules.present_condition import present_condition, present_event
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.reasons import Reason

PERIODS_IGNORED = "ExcludedPeriodsIgnored"
"""Type of the condition."""


def periods_condition(o: Observation, now: float) -> tuple[Condition, ...]:
    """Return the condition of periods that are left out; none if none is.

    It is apart from Ready, Reconciling and Stalled: the application is as well as it was.
    """
    return present_condition(o, PERIODS_IGNORED, Reason.SCHEDULE_INVALID, _message(o.app), now)


def ignored_periods_event(o: Observation) -> tuple[PublishEvent, ...]:
    """Publish which periods are left out when that begins, or others are."""
    occasion = f"generation {o.app.metadata.generation}"
    return present_event(o, PERIODS_IGNORED, Reason.SCHEDULE_INVALID, _message(o.app), occasion)


def _message(app: StreamingApp) -> str:
    spec = app.spec.autoscaling
    if spec is None or not spec.is_on:
        return ""
    found = [(number, fault_of(each.schedule, each.time_zone)) for number, each in enumerate(spec.excluded_periods)]
    faults = [(number, fault) for number, fault in found if fault]
    return autoscaling_messages.periods_ignored(faults) if faults else ""
