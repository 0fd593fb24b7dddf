"""Reports pods whose end their node does not confirm in time. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.api.streaming_app import Phase
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.pods.records.faults import why_still_there
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import Reason

OVERDUE = 60.0
"""Seconds after the end of its grace period at which a pod that is still there is called stuck."""


def wait_for_end(pods: Iterable[PodRecord], phase: Phase, now: float) -> Verdict | float | None:
    """Return what to say of a pod whose end its node does not confirm, else in how many seconds to check again."""
    terminating = [pod for pod in pods if pod.terminating]
    late = next((pod for pod in terminating if now >= pod.delete_by + OVERDUE), None)
    if late is not None:
        return Verdict(phase, Health.STALLED, Reason.POD_NOT_GONE, why_still_there(late))
    return min((pod.delete_by + OVERDUE - now for pod in terminating), default=None)
