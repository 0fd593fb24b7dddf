"""What is said of an application while its version changes, and what of its last change is still to be told. No I/O."""

from __future__ import annotations

import dataclasses

from tidegate.decide.actions import PublishEvent
from tidegate.decide.housekeeping import ORDER_PAUSE
from tidegate.decide.rules import earliest
from tidegate.decide.upgrades.copying import PATIENCE
from tidegate.decide.upgrades.gate import START_PATIENCE, idle_in, waits_for_input
from tidegate.decide.upgrades.in_force import HELD_TO
from tidegate.decide.upgrades.step import (
    Step,
    active_queries,
    find_report,
    seconds_in_phase,
    seconds_under_test,
    version_held,
)
from tidegate.decide.verdict import Health, Verdict
from tidegate.model.streaming_app import Phase, UpgradePhase, UpgradeStatus
from tidegate.observe.observation import Observation

LONGEST_WAIT = 300.0
"""Seconds until it is looked whether a time is over, at most: clocks are set back."""
_HEALTH = {
    UpgradePhase.COPYING: Health.RECONCILING,
    UpgradePhase.STOPPING: Health.RECONCILING,
    UpgradePhase.GATE: Health.RECONCILING,
    UpgradePhase.ROLLING_BACK: Health.RECONCILING,
    UpgradePhase.FAILED: Health.RECONCILING,
    UpgradePhase.REFUSED: Health.STALLED,
    UpgradePhase.ROLLED_BACK: Health.STALLED,
}
"""Who waits for the spec to be what runs must not be told that it is, however well the application runs."""


def refuse_unknown_version(o: Observation, now: float) -> Verdict | None:
    """Start nothing if the version before is to run, and nobody knows it: it was never stable, or can not be read."""
    upgrade = o.app.status.upgrade
    if o.driver is not None or upgrade is None or upgrade.phase not in HELD_TO:
        return None
    if version_held(o.app.spec, o.app.status.last_stable) is not None:
        return None
    if upgrade.phase is not UpgradePhase.ROLLING_BACK and o.spec_hash == upgrade.to_spec_hash:
        return None
    return Verdict(Phase.PENDING, Health.STALLED, reason_of(upgrade), upgrade.message)


def reason_of(upgrade: UpgradeStatus) -> str:
    """Return the condition's and the event's word for the phase of an upgrade."""
    return f"Upgrade{upgrade.phase.value}"


def colour(o: Observation, wanted: str, verdict: Verdict, now: float) -> Verdict:
    """Return a verdict about what runs as one about what was asked for.

    Args:
        o: everything that is known.
        wanted: hash of the version in the spec.
        verdict: what the rules say of the version that is in force.
        now: seconds since the epoch.
    """
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase not in _HEALTH:
        return verdict
    verdict = dataclasses.replace(verdict, wake_after=earliest(verdict.wake_after, _look_again_in(o, upgrade, now)))
    about_it = upgrade.to_spec_hash == wanted or upgrade.phase is UpgradePhase.ROLLING_BACK
    # One that is suspended is what the spec asks for, whatever version it has.
    if not about_it or verdict.health is not Health.READY or verdict.phase not in (Phase.RUNNING, Phase.COMPLETED):
        return verdict
    health = _HEALTH[upgrade.phase]
    if upgrade.phase is UpgradePhase.GATE and idle_in(o, upgrade, now) == 0.0:
        health = Health.READY  # nobody knows when there will be input, and until then it is as it should be
    message = f"{upgrade.message}{_progress(o, upgrade)}"
    return dataclasses.replace(verdict, health=health, reason=reason_of(upgrade), message=message)


def tell_step(o: Observation, step: Step | None) -> tuple[PublishEvent, ...]:
    """Return the event of a step into another phase, or of another upgrade."""
    upgrade, known = step.upgrade if step is not None else None, o.app.status.upgrade
    if step is None or upgrade is None:
        return ()
    if known is not None and (known.number, known.phase, known.to_spec_hash) == (
        upgrade.number,
        upgrade.phase,
        upgrade.to_spec_hash,
    ):
        return ()
    since = upgrade.since.timestamp() if upgrade.since is not None else 0.0
    occasion = f"{upgrade.number}/{upgrade.phase.value}/{since:.0f}"
    return (PublishEvent(reason_of(upgrade), upgrade.message, step.warning, occasion),)


def _progress(o: Observation, upgrade: UpgradeStatus) -> str:
    if upgrade.phase is UpgradePhase.COPYING and upgrade.pin is not None:
        report = find_report(o, upgrade.pin.copy)
        if report is None:
            return ""
        if report.message:
            return f" {report.message}"
        return f" {report.files} of {report.of_files} files are copied." if report.of_files else ""
    if upgrade.phase is not UpgradePhase.GATE or not active_queries(o):
        return ""
    wanted = o.app.spec.upgrade.stable_batches
    least = min(query.committed for query in active_queries(o))
    waits = " It waits for input." if waits_for_input(o) else ""
    return f" It is stable after {wanted} batches of each query, and has committed {min(least, wanted)}.{waits}"


def _look_again_in(o: Observation, upgrade: UpgradeStatus, now: float) -> float | None:
    seconds = seconds_in_phase(upgrade, now)
    left: list[float] = []
    if upgrade.phase is UpgradePhase.COPYING:
        unknown = upgrade.pin is not None and find_report(o, upgrade.pin.copy) is None
        # An agent that did not take the order, in a hurry or because it was slow, is told again.
        left = [PATIENCE - seconds, ORDER_PAUSE if unknown else 0.0]
    elif upgrade.phase is UpgradePhase.GATE:
        limit, tested = o.app.spec.upgrade.timeout_seconds, seconds_under_test(upgrade, now)
        left = [START_PATIENCE - seconds, limit - tested, idle_in(o, upgrade, now) or 0.0]
    left = [value for value in left if value > 0]
    return min(LONGEST_WAIT, *left) if left else None
