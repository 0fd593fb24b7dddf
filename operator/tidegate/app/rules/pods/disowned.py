"""Reports a pod that runs the application's program and has no owner: only people may delete it. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import Phase
from tidegate.app.observation import Observation
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import refused_for


def wait_for_disowned_driver(o: Observation, phase: Phase, now: float) -> Verdict | None:
    """Return what to say while the driver's name is such a pod's, None if there is none or it is to be read again."""
    refusal = o.memory.refusal
    if refusal is None or not refusal.holds_end or o.driver is not None:
        return None
    left = refused_for(refusal.at, refusal.attempts, now)
    return Verdict(phase, Health.STALLED, refusal.reason, refusal.message, wake_after=left) if left else None
