"""The conditions of any kind of resource, from a verdict. No I/O."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from tidegate.api.status.status import Condition
from tidegate.engine.rules.health import Health, Judged


def build_conditions(old: Iterable[Condition], verdict: Judged, generation: int, now: float) -> tuple[Condition, ...]:
    """Return the three conditions; a transition time changes only with its condition's status."""
    before = {condition.type: condition for condition in old}
    built = []
    for health in Health:
        status = "True" if health is verdict.health else "False"
        known = before.get(health.value)
        built.append(
            Condition(
                type=health.value,
                status=status,
                reason=verdict.reason,
                message=verdict.message if status == "True" or health is Health.READY else "",
                observed_generation=generation,
                last_transition_time=transition_time(known, status, now),
            )
        )
    return tuple(built)


def transition_time(known: Condition | None, status: str, now: float) -> datetime.datetime:
    """Return when a condition got its status: that of ``known`` as long as the status is the same."""
    if known is not None and known.status == status:
        return known.last_transition_time
    return time_in_status(now)


def time_in_status(now: float) -> datetime.datetime:
    """Return a time as a status has it: in whole seconds, with its zone."""
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC)
