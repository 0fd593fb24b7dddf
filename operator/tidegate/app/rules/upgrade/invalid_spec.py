"""An edit of which no driver pod can be made, during an upgrade: the application does not stand still for it. No I/O.

Of the version that was under way only the hash is recorded, so it cannot be launched any more. While anything runs it
is left alone. Where nothing does, the last stable version, whose spec is in the status, goes on at once. When the spec
is fixed, also by setting it back to the version that was under way, the upgrade begins again.
"""

from __future__ import annotations

import dataclasses

import msgspec

from tidegate.api.streaming_app import Phase, StableSpec, UpgradeStatus
from tidegate.app.observation import CheckedReferences, Observation
from tidegate.app.rules.launch.launch import MAY_COME, reason_not_built, why_not_built
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.pods.ends import ended_for_good, obey_policy_never
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.gate import by_hand, fails_beside_an_edit, why_it_outlasts, why_not_rolled_back
from tidegate.app.rules.upgrade.launched import has_finished, is_in_time, never_began
from tidegate.app.rules.upgrade.record import UNDER_TEST, Step, change, is_pending, rival_of, runs_ready, version_held
from tidegate.app.rules.upgrade.repartition import not_repartitioned
from tidegate.app.rules.upgrade.repartition_dry_run import why_not_repartitioned
from tidegate.app.rules.upgrade.rollback import rolled_back
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.pods.records.fault_messages import sentence
from tidegate.pods.records.faults import Problem, name_end
from tidegate_spark.contract.reasons import Reason


@dataclasses.dataclass(frozen=True, slots=True)
class InvalidEdit:
    """An upgrade whose version cannot be launched, and what there is instead."""

    upgrade: UpgradeStatus
    """With the spec as what it is about."""
    stable: StableSpec
    why_not: str
    """Which field of the spec keeps a pod from being made, and what to do about it."""
    reason: Reason
    """The same in one word: what is missing may come, and what is wrong stays so."""
    remedy: str
    """What ends the matter for good, as what follows a sentence; empty if that is said."""
    can_go_on: bool
    """A driver can be made of the stable version."""


def repartition_is_for_nothing(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Repartition no state for a version that cannot be launched: the old lineage is there, whole."""
    edit = _edit(o, upgrade, now) if is_pending(upgrade) else None
    if edit is None:
        return None
    # If no pod can be made of the stable version either, nothing is waited for.
    message_of = messages.continues_without_repartition if edit.can_go_on else messages.nothing_continues
    message = message_of(edit.why_not, edit.remedy)
    return not_repartitioned(o, edit.upgrade, Problem(edit.reason, edit.why_not), message, now)


def nothing_was_launched(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Have the stable version go on where it stopped: without a launch there is nothing to be undone."""
    edit = _edit(o, upgrade, now) if not upgrade.epoch else None
    if edit is None or not edit.can_go_on:
        return None
    message = messages.continues_where_stopped(edit.why_not, edit.remedy)
    return change(edit.upgrade, message, edit.reason, lineage=lineage_of(o))


def work_can_be_undone(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """After a launch the state is the new version's: what failed at the gate is rolled back, and so is this.

    What would not be rolled back there is not here either: which state is given up is for a person to say then.
    """
    edit = _edit(o, upgrade, now) if upgrade.epoch else None
    if edit is None or not edit.can_go_on or _why_not_undone(o, edit.upgrade, now):
        return None
    about = edit.upgrade
    if edit.reason in MAY_COME:
        # It is the version launched last that is rolled back. The spec's is tried once nothing is in its way.
        about = msgspec.structs.replace(about, to_spec_hash=o.app.status.applied_spec_hash)
    return rolled_back(o, about, edit.stable, Problem(edit.reason, edit.why_not + edit.remedy))


def no_pod_can_be_made(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Refuse a version of which no pod can be made, as turned out only now, while the previous one is in force."""
    why_not, remedy = _why_not_launchable(o) if upgrade.to_spec_hash == o.spec_hash else ("", "")
    if not why_not:
        return None
    # Of a rehearsal nothing will come any more.
    return change(upgrade, messages.continues(why_not, remedy), reason_not_built(o), rehearsal=None)


def time_passed_beside_it(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Note that the time of the gate has passed beside the edit: a failure is no reason to undo it all afterwards.

    Else the spec that is set back to this very version would find one that was not stable in its time.
    """
    if upgrade.to_spec_hash == o.spec_hash or upgrade.reason == Reason.GATE_OVERRUN:
        return None
    if is_in_time(o, upgrade, now) or never_began(o, upgrade):
        return None
    return change(upgrade, reason=Reason.GATE_OVERRUN)


def standstill_condition(o: Observation, now: float) -> Verdict | None:
    """Say why nothing runs where no pod can be made of the spec, and the stable version is not to go on by itself."""
    upgrade = o.app.status.upgrade
    if o.driver is not None or upgrade is None or upgrade.phase not in UNDER_TEST or not upgrade.epoch:
        return None
    why_not, stays = why_not_built(o), _why_not_undone(o, upgrade, now)
    stable = o.app.status.last_stable
    if not why_not or not stays or (stable is not None and not can_go_on(o, stable)):
        return None
    phase = Phase.COMPLETED if has_finished(o, upgrade) else Phase.PENDING
    return Verdict(phase, Health.STALLED, reason_not_built(o), messages.standstill(why_not, stays))


def failing_version_condition(o: Observation, now: float) -> Verdict | None:
    """Say of a version that fails again and again beside the edit how it is rolled back: by itself it is not."""
    driver, upgrade = o.driver, o.app.status.upgrade
    if driver is None or upgrade is None or driver.spec_hash == o.spec_hash or driver.terminating:
        return None
    launched = 0 < upgrade.epoch <= driver.epoch and upgrade.phase in UNDER_TEST
    if not launched or driver.ended is None or ended_for_good(driver) or driver.phase == "Failed" or runs_ready(o):
        return None
    why_not, stays = why_not_built(o), _why_not_undone(o, upgrade, now)
    if not why_not or not stays:
        return None
    message = messages.failing(why_not, name_end(driver).message, stays)
    return Verdict(Phase.STARTING, Health.STALLED, reason_not_built(o), message)


def leave_ended_version(o: Observation, now: float) -> Verdict | None:
    """Leave a version that ended for good after its launch as it is, while no pod can be made of the changed spec.

    Its pod is how that is known: without it, it would be a lost one. Only where a version is rolled back it goes.
    """
    driver, upgrade = o.driver, o.app.status.upgrade
    if driver is None or upgrade is None or driver.spec_hash == o.spec_hash or driver.terminating:
        return None
    launched = 0 < upgrade.epoch <= driver.epoch
    if not launched or not (ended_for_good(driver) or obey_policy_never(o, now) is not None):
        return None
    why_not = why_not_built(o)
    if not why_not:
        return None
    finished, stays = has_finished(o, upgrade), _why_not_undone(o, upgrade, now)
    end = messages.VERSION_FINISHED if finished else name_end(driver).message
    message = messages.left_ended(why_not, driver.name, end, stays)
    return Verdict(Phase.COMPLETED if finished else Phase.FAILED, Health.STALLED, reason_not_built(o), message)


def _edit(o: Observation, upgrade: UpgradeStatus, now: float) -> InvalidEdit | None:
    """Return the edit for which nothing runs, because nothing can be made of it; None if there is no such thing."""
    stable = o.app.status.last_stable
    if stable is None or o.app.spec.suspend:
        return None
    if o.driver is not None and not fails_beside_an_edit(o, upgrade, now):
        return None
    why_not, remedy = _why_not_launchable(o)
    if not why_not:
        return None
    about_it = msgspec.structs.replace(upgrade, to_spec_hash=o.spec_hash)
    return InvalidEdit(about_it, stable, why_not, reason_not_built(o), remedy, can_go_on(o, stable))


def _why_not_undone(o: Observation, upgrade: UpgradeStatus, now: float) -> str:
    """Return why a version that was launched is not rolled back for an edit, empty if it is to be.

    What it did after the time of its test is nobody's mistake: a pod that is lost days later must not undo them.
    """
    if never_began(o, upgrade):
        return why_not_rolled_back(o, upgrade)
    if has_finished(o, upgrade):
        return by_hand(upgrade, messages.HAS_FINISHED)
    stays = why_not_rolled_back(o, upgrade)
    return stays if stays or is_in_time(o, upgrade, now) else why_it_outlasts(o, upgrade)


def _why_not_launchable(o: Observation) -> tuple[str, str]:
    """Return why nothing can come of the spec's version, and its remedy; both are empty if it can be launched."""
    why_not = why_not_built(o)
    return (sentence(why_not), messages.CORRECT_OR_REVERT) if why_not else (why_not_repartitioned(o), "")


def can_go_on(o: Observation, stable: StableSpec) -> bool:
    """Return whether a driver can be made of the stable version, as it is recorded."""
    held = version_held(o.app.spec, stable)
    if held is None:
        return False
    app = msgspec.structs.replace(o.app, spec=held)
    rival, unasked = rival_of(o, stable), CheckedReferences()
    return not why_not_built(dataclasses.replace(o, app=app, rival=rival, unfit=None, references=unasked))
