"""The condition Available: the application works, whether or not it is as the spec asks. No I/O.

It stays True through an upgrade, when Ready is False: that is bounded by spec.upgrade.timeoutSeconds, and the
repartition in it by spec.state.repartition.timeoutSeconds.
"""

from __future__ import annotations

from tidegate.api.streaming_app import Condition, Phase, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.upgrade.record import UNDER_WAY
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.conditions import transition_time
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.reasons import AnyReason, Reason

AVAILABLE = "Available"
"""Type of the condition."""
_OUT_OF_WORK = frozenset({Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED, Phase.DELETING})


def works(verdict: Verdict) -> bool:
    """Return whether a verdict about what runs says that its queries do."""
    return verdict.phase is Phase.RUNNING and verdict.health is Health.READY


def available_condition(
    o: Observation, verdict: Verdict, upgrade: UpgradeStatus | None, now: float, *, runs: bool
) -> Condition:
    """Return the condition.

    Args:
        o: everything that is known.
        verdict: what is said of the application.
        upgrade: the upgrade as it is recorded next.
        now: seconds since the epoch.
        runs: whether its queries run, whatever version they are of.
    """
    known = o.app.status.condition(AVAILABLE)
    reason: AnyReason
    before = known is not None and known.status == "True"
    under_way = upgrade is not None and upgrade.phase in UNDER_WAY
    if runs:
        status, reason, message = "True", Reason.RUNNING, messages.QUERIES_RUN
    elif before and under_way and verdict.health is not Health.STALLED and verdict.phase not in _OUT_OF_WORK:
        status, reason, message = "True", Reason.UPGRADING, messages.UPGRADING
    else:
        status, reason, message = "False", verdict.reason, verdict.message
    return Condition(
        type=AVAILABLE,
        status=status,
        reason=reason,
        message=message,
        observed_generation=o.app.metadata.generation,
        last_transition_time=transition_time(known, status, now),
    )
