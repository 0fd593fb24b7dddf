"""Reports that executor.instances is ignored while the autoscaler is Active. No I/O.

The condition stays as long as the edit has no effect. The event is named by the hour, because an HPA may write every
few seconds.
"""

from __future__ import annotations

from tidegate.api.streaming_app import Condition
from tidegate.app.observation import Observation
from tidegate.app.rules.live import autoscaling_messages
from tidegate.app.rules.present_condition import present_condition
from tidegate.autoscaling.rules.inputs import basis_of
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.pauses import hour_of
from tidegate_spark.contract.reasons import Reason

INSTANCES_IGNORED = "InstancesIgnored"
"""Type of the condition, and reason of the event."""


def instances_condition(o: Observation, now: float) -> tuple[Condition, ...]:
    """Return the condition of a number that is ignored; none if none is.

    It is apart from Ready, Reconciling and Stalled: the application is as well as it was.
    """
    basis = basis_of(o.app)
    if basis is None or basis.ignored is None:
        return ()
    message = autoscaling_messages.instances_ignored(
        basis.instances, basis.ignored, basis.min_executors, basis.max_executors
    )
    return present_condition(o, INSTANCES_IGNORED, Reason.AUTOSCALER_ACTIVE, message, now)


def ignored_instances_event(o: Observation, now: float) -> tuple[PublishEvent, ...]:
    """Publish that a number is ignored which was not before; without numbers, so at most once an hour."""
    known, basis = o.app.status.autoscaling, basis_of(o.app)
    if basis is None or basis.ignored is None:
        return ()
    reported = known.basis.ignored if known is not None and known.basis is not None else None
    if reported == basis.ignored:
        return ()
    message = autoscaling_messages.INSTANCES_IGNORED
    return (PublishEvent(Reason.INSTANCES_IGNORED, message, True, hour_of(now)),)
