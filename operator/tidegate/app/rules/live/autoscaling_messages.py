"""Messages about what the autoscaler ignores. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

_EITHER_MODE_OR_BOUNDS = (
    "Set the number back, set spec.autoscaling.mode to Off or Advise, or change spec.autoscaling.minExecutors and "
    "spec.autoscaling.maxExecutors."
)
INSTANCES_IGNORED = (
    "spec.executor.instances was changed and has no effect, because spec.autoscaling.mode is Active. "
    f"{_EITHER_MODE_OR_BOUNDS} The condition InstancesIgnored has the numbers."
)


def instances_ignored(before: int, ignored: int, least: int, most: int) -> str:
    return (
        f"spec.executor.instances was changed from {before} to {ignored} and has no effect: spec.autoscaling.mode is "
        f"Active, and the autoscaler sets the number, from {least} (minExecutors) to {most} (maxExecutors). "
        f"{_EITHER_MODE_OR_BOUNDS} If an HPA or KEDA changed it, remove that: only one can decide."
    )


def with_metrics(summary: str) -> str:
    return f"{summary} status.autoscaling.metrics has the numbers."


def periods_ignored(faults: Sequence[tuple[int, str]]) -> str:
    """Return the text; each fault has the period's place in the list and why its schedule never fires."""
    which = "this period" if len(faults) == 1 else "these periods"
    named = " ".join(f"spec.autoscaling.excludedPeriods[{number}].schedule: {why}." for number, why in faults)
    # The effective entries come first, because an event has no room for a long list.
    return f"The autoscaler ignores {which} and follows the others until that is corrected. {named}"
