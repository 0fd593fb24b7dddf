"""Messages about a ResourceQuota without room for executors. No I/O."""

from __future__ import annotations

from tidegate.autoscaling.algorithm.situation import Quota


def quota_message(quota: Quota) -> str:
    """Return what a quota allows, with its numbers as far as they are known, and what helps besides more room."""
    if quota.unsure:
        return _unsure(quota)
    room = f"ResourceQuota {quota.name} has room for {_number(quota)}"
    if not quota.resource:
        return room
    each = f"an executor requests {quota.asked}"
    if quota.unstated:
        each = f"executors state no {quota.resource}: set {quota.unstated}"
    return f"{room} ({quota.used} of {quota.hard} {quota.resource} are used, and {each})"


def _number(quota: Quota) -> str:
    """Return so many in all: of those that are wanted some have a pod, and nobody is to take it for so many more."""
    if quota.most == 0:
        return "no executor"
    most = "1 executor" if quota.most == 1 else f"{quota.most} executors"
    if quota.there is None:
        return f"{most} in all"
    return f"{most} in all, of which {quota.there} {'has' if quota.there == 1 else 'have'} a pod"


def _unsure(quota: Quota) -> str:
    counts = f"ResourceQuota {quota.name} counts {quota.resource} ({quota.used} of {quota.hard} are used)"
    if not quota.unstated:
        return f"{counts}, and the number of executors that it has room for is unknown"
    given = f" (the driver was given {quota.hint})" if quota.hint else ""
    return (
        f"{counts}, and refuses executors, which state none, unless a LimitRange gives them one{given}. Set "
        f"{quota.unstated}"
    )
