"""Rolls back a new version: because it failed, or on request. No I/O."""

from __future__ import annotations

from msgspec.structs import replace

from tidegate.api.spec_hash import recorded_version, version_of
from tidegate.api.streaming_app import StableSpec, UpgradePhase, UpgradeStatus
from tidegate.api.values.plain_secrets import plain_secrets, without_secrets
from tidegate.app.observation import Observation
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.record import Step, change, next_lineage, runs_ready, secret_gone
from tidegate.pods.records.faults import Problem, has_completed
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import Reason, reason_from

_LAUNCHED = frozenset({UpgradePhase.GATE, UpgradePhase.COMPLETED, UpgradePhase.FAILED})
"""Phases in which a new version runs."""
_NOTHING_TO_ROLL_BACK = frozenset({UpgradePhase.REFUSED, UpgradePhase.WITHDRAWN})


def is_requested(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll an upgrade back if the spec names its rollback snapshot; any other name has no effect."""
    snapshot, (target, rejected) = upgrade.rollback_snapshot, _target(o, upgrade)
    if snapshot is None or snapshot.id != o.app.spec.upgrade.rollback_to or snapshot.loss or target is None:
        return None
    if not (_was_launched(upgrade) or upgrade.previous) or secret_gone(o.app.spec, target):
        return None
    why = Problem(Reason.ROLLBACK_REQUESTED, messages.rollback_requested(snapshot.id))
    return rolled_back(o, replace(upgrade, to_spec_hash=rejected, rollback_to=snapshot.id), target, why)


def _target(o: Observation, upgrade: UpgradeStatus) -> tuple[StableSpec | None, str]:
    """Return the version that a requested rollback restores, and the hash of the one that is not tried again."""
    stable = o.app.status.last_stable
    if upgrade.phase is UpgradePhase.COMPLETED and stable is not None:
        return upgrade.previous, stable.spec_hash  # which may have been started again since by its number
    if upgrade.phase is UpgradePhase.COMPLETED or upgrade.previous is not None:
        return upgrade.previous, o.spec_hash  # what the spec asks for was refused since, or is what runs
    return stable, upgrade.to_spec_hash


def _was_launched(upgrade: UpgradeStatus) -> bool:
    """Return whether a new version was launched, be it that another one is about to take its place."""
    return upgrade.phase in _LAUNCHED or (upgrade.phase is UpgradePhase.STOPPING and upgrade.epoch > 0)


def request_is_in_vain(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record a request for a rollback without effect, in the write that reports it, so that it is reported once."""
    wish = o.app.spec.upgrade.rollback_to
    if wish == upgrade.rollback_to or not why_ignored(upgrade, wish):
        return None
    return change(upgrade, rollback_to=wish)


def why_ignored(upgrade: UpgradeStatus | None, wish: str) -> str:
    """Return why a request for a rollback has no effect, empty if there is none, or it has one."""
    known = ""
    # One that was refused at once keeps the way back of the upgrade before.
    if upgrade is not None and (upgrade.phase not in _NOTHING_TO_ROLL_BACK or upgrade.previous is not None):
        known = upgrade.rollback_snapshot.id if upgrade.rollback_snapshot is not None else ""
    return messages.rollback_ignored(wish, known) if wish not in ("", known) else ""


def lost_snapshot_condition(o: Observation) -> Problem | None:
    """Return what a request for a rollback waits for: its snapshot is lost, or a secret of its version."""
    upgrade = o.app.status.upgrade
    snapshot = upgrade.rollback_snapshot if upgrade is not None and _was_launched(upgrade) else None
    if upgrade is None or snapshot is None or snapshot.id != o.app.spec.upgrade.rollback_to:
        return None
    if snapshot.loss:
        return Problem(Reason.ROLLBACK_SNAPSHOT_LOST, messages.rollback_snapshot_lost(snapshot.id, snapshot.loss))
    target = _target(o, upgrade)[0]
    gone = secret_gone(o.app.spec, target) if target is not None else ""
    return Problem(Reason.SECRET_NOT_RECORDED, messages.secret_not_recorded(snapshot.id, gone)) if gone else None


def spec_is_reverted(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll a version back when the spec is reverted before that version was stable."""
    stable, snapshot = o.app.status.last_stable, upgrade.rollback_snapshot
    # Without a launch there is nothing to be undone; without a snapshot the state stays as it is.
    if stable is None or o.spec_hash != stable.spec_hash or not upgrade.epoch or snapshot is None or snapshot.loss:
        return None
    return rolled_back(o, upgrade, stable, Problem(Reason.SPEC_REVERTED, messages.SPEC_REVERTED))


def rolled_back(o: Observation, upgrade: UpgradeStatus, target: StableSpec, why: Problem) -> Step:
    """Return the intent to roll back to a stable version, with the state of its snapshot in a new lineage, if any."""
    with_state, unrecorded = upgrade.rollback_snapshot is not None, list[str]()
    if o.spec_hash != target.spec_hash and recorded_version(o.app.spec) == without_secrets(target.spec):
        # The two versions differ only in secrets, which are not recorded: it would run with the same values.
        unrecorded = [secret.field for secret in plain_secrets(version_of(o.app.spec))]
    lineage = next_lineage(o) if with_state else lineage_of(o)
    message = messages.rolling_back(
        why.of_former_version or why.message, lineage, with_state=with_state, unrecorded=unrecorded
    )
    return change(upgrade, message, why.reason, stable=target, lineage=lineage, epoch=0, previous=None)


def stable_version_runs(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Record that the stable version runs again."""
    driver, stable = o.driver, o.app.status.last_stable
    if not upgrade.epoch or stable is None or driver is None or driver.epoch < upgrade.epoch:
        return None
    if _is_of_version_left(driver, upgrade, stable) or (not runs_ready(o) and not has_completed(driver)):
        return None
    return change(upgrade, messages.rolled_back(upgrade.message), reason_from(upgrade.reason))


def _is_of_version_left(driver: PodRecord, upgrade: UpgradeStatus, stable: StableSpec) -> bool:
    # A request for a rollback may come with the spec set back to the version that it goes back to.
    return driver.spec_hash == upgrade.to_spec_hash != stable.spec_hash
