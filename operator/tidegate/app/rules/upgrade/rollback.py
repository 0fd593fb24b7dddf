"""A new version is rolled back: because it failed, or because somebody wants it. No I/O."""

from __future__ import annotations

import msgspec

from tidegate.api.spec_hash import recorded_version, version_of
from tidegate.api.streaming_app import StableSpec, UpgradePhase, UpgradeStatus
from tidegate.api.values.plain_secrets import plain_secrets, without_secrets
from tidegate.app.observation import Observation
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.record import Step, change, next_lineage, runs_ready, secret_gone
from tidegate.pods.records.faults import Problem, read_termination
from tidegate_spark.contract.reasons import Reason, reason_from

_LAUNCHED = frozenset({UpgradePhase.GATE, UpgradePhase.COMPLETED, UpgradePhase.FAILED})
"""Phases in which a new version runs."""
_NOTHING_TO_ROLL_BACK = frozenset({UpgradePhase.REFUSED, UpgradePhase.WITHDRAWN})


def is_requested(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll an upgrade back whose rollback snapshot the spec names; any other name does nothing."""
    snapshot = upgrade.rollback_snapshot
    if snapshot is None or snapshot.id != o.app.spec.upgrade.rollback_to:
        return None
    if not _can_be_rolled_back(upgrade) and upgrade.previous is None:
        return None
    target = _target(o, upgrade)
    if target is None or snapshot.loss or secret_gone(o.app.spec, target):
        return None
    if _is_over(upgrade):
        upgrade = msgspec.structs.replace(upgrade, to_spec_hash=_what_is_left(o, upgrade))
    why = Problem(Reason.ROLLBACK_REQUESTED, messages.rollback_requested(snapshot.id))
    return rolled_back(o, msgspec.structs.replace(upgrade, rollback_to=snapshot.id), target, why)


def _is_over(upgrade: UpgradeStatus) -> bool:
    return upgrade.phase is UpgradePhase.COMPLETED or upgrade.previous is not None


def _target(o: Observation, upgrade: UpgradeStatus) -> StableSpec | None:
    """Return the version that a rollback by hand goes back to."""
    return upgrade.previous if _is_over(upgrade) else o.app.status.last_stable


def _can_be_rolled_back(upgrade: UpgradeStatus) -> bool:
    """Return whether a new version was launched, be it that another one is about to take its place."""
    return upgrade.phase in _LAUNCHED or (upgrade.phase is UpgradePhase.STOPPING and upgrade.epoch > 0)


def _what_is_left(o: Observation, upgrade: UpgradeStatus) -> str:
    """Return the version that is not tried again after an upgrade is rolled back that was done."""
    stable = o.app.status.last_stable
    if upgrade.phase is not UpgradePhase.COMPLETED or stable is None:
        return o.spec_hash  # what the spec asks for was refused since, or is what runs
    # The version may have been started again since by its number.
    return stable.spec_hash


def request_is_in_vain(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Note a request for a rollback that leads to nothing, in the write that reports it: so it is reported once."""
    wish = o.app.spec.upgrade.rollback_to
    if wish == upgrade.rollback_to or not why_ignored(upgrade, wish):
        return None
    return change(upgrade, rollback_to=wish)


def why_ignored(upgrade: UpgradeStatus | None, wish: str) -> str:
    """Return in words why nothing follows from a wish for a rollback, empty if there is none, or something does."""
    snapshot = upgrade.rollback_snapshot if upgrade is not None and _has_way_back(upgrade) else None
    if not wish or (snapshot is not None and snapshot.id == wish):
        return ""
    return messages.rollback_ignored(wish, snapshot.id if snapshot is not None else "")


def _has_way_back(upgrade: UpgradeStatus) -> bool:
    # One that was refused at once keeps the way back of the upgrade before.
    return upgrade.phase not in _NOTHING_TO_ROLL_BACK or upgrade.previous is not None


def lost_snapshot_condition(o: Observation) -> Problem | None:
    """Return what a wish for a rollback waits for: its snapshot is lost, or a secret of its version."""
    upgrade, wish = o.app.status.upgrade, o.app.spec.upgrade.rollback_to
    if upgrade is None or upgrade.rollback_snapshot is None or not _can_be_rolled_back(upgrade):
        return None
    snapshot, target = upgrade.rollback_snapshot, _target(o, upgrade)
    if snapshot.id != wish:
        return None
    if not snapshot.loss:
        gone = secret_gone(o.app.spec, target) if target is not None else ""
        message = messages.secret_not_recorded(snapshot.id, gone)
        return Problem(Reason.SECRET_NOT_RECORDED, message) if gone else None
    return Problem(Reason.ROLLBACK_SNAPSHOT_LOST, messages.rollback_snapshot_lost(snapshot.id, snapshot.loss))


def spec_is_reverted(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll a version back with its state when the spec is changed back before that version was stable."""
    stable, snapshot = o.app.status.last_stable, upgrade.rollback_snapshot
    # Without a launch there is nothing to be undone; without a snapshot the state stays as it is.
    if stable is None or o.spec_hash != stable.spec_hash or not upgrade.epoch or snapshot is None or snapshot.loss:
        return None
    return rolled_back(o, upgrade, stable, Problem(Reason.SPEC_REVERTED, messages.SPEC_REVERTED))


def rolled_back(o: Observation, upgrade: UpgradeStatus, target: StableSpec, why: Problem) -> Step:
    """Return the intent to go back to a stable version, with the state of its snapshot in a new lineage, if any."""
    with_state = upgrade.rollback_snapshot is not None
    lineage = next_lineage(o) if with_state else lineage_of(o)
    message = messages.rolling_back(why.message, lineage, with_state=with_state, unrecorded=_unrecorded(o, target))
    return change(upgrade, message, why.reason, stable=target, lineage=lineage, epoch=0, previous=None)


def _unrecorded(o: Observation, target: StableSpec) -> list[str]:
    """Return the secrets of the spec if nothing else tells it from a version: that one is run with the same values."""
    if o.spec_hash == target.spec_hash or recorded_version(o.app.spec) != without_secrets(target.spec):
        return []
    return [secret.field for secret in plain_secrets(version_of(o.app.spec))]


def stable_version_runs(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record that the stable version runs again."""
    driver = o.driver
    if not upgrade.epoch or o.app.status.last_stable is None:
        return None
    if driver is None or driver.epoch < upgrade.epoch or driver.spec_hash == upgrade.to_spec_hash:
        return None
    told = read_termination(driver.ended) if not driver.running else None
    if not runs_ready(o) and (told is None or told.reason is not Reason.COMPLETED):
        return None
    return change(upgrade, messages.rolled_back(upgrade.message), reason_from(upgrade.reason))
