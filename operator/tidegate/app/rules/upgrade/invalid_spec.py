"""Handles a version from which no pod can be built after the stop: the stable version is launched again. No I/O.

A later edit gets here only if the record is from an operator that did not record the version (see ``effective_spec``).
"""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from tidegate.api.streaming_app import Phase, StableSpec, UpgradePhase, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.launch import MAY_COME, reason_not_built, why_not_built
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.effective_spec import why_edit_waits, with_version
from tidegate.app.rules.upgrade.gate import why_not_rolled_back
from tidegate.app.rules.upgrade.launched import has_finished, is_in_time, was_refused
from tidegate.app.rules.upgrade.record import UNDER_TEST, Step, change, is_pending
from tidegate.app.rules.upgrade.repartition.dry_run import why_not_repartitioned
from tidegate.app.rules.upgrade.repartition.phase import not_repartitioned
from tidegate.app.rules.upgrade.rollback import rolled_back
from tidegate.app.rules.upgrade.starting_offsets import offsets_asked
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.pods.records.fault_messages import sentence
from tidegate.pods.records.faults import Problem


def repartition_is_for_nothing(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """End a repartition for a version that cannot be launched; the old lineage is whole."""
    why_not, remedy = _why_nothing_follows(o) if is_pending(upgrade) else ("", "")
    if not why_not:
        return None
    # If no pod can be made of the stable version either, nothing is waited for.
    goes_on = can_go_on(o, o.app.status.last_stable)
    message_of = messages.continues_without_repartition if goes_on else messages.nothing_continues
    why = Problem(reason_not_built(o), why_not)
    about = replace(upgrade, to_spec_hash=o.spec_hash)
    return not_repartitioned(o, about, why, message_of(why_not, remedy), now)


def nothing_was_launched(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Let the stable version continue where it stopped, because nothing was launched."""
    why_not, remedy = _why_nothing_follows(o) if not upgrade.epoch else ("", "")
    if not why_not or not can_go_on(o, o.app.status.last_stable):
        return None
    message, reason, offsets = messages.continues_where_stopped(why_not, remedy), reason_not_built(o), offsets_asked(o)
    refused = replace(upgrade, to_spec_hash=o.spec_hash, starting_offsets=offsets)
    return change(refused, message, reason, lineage=lineage_of(o))


def work_can_be_undone(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll back a version that cannot be launched again, if the gate would; not what it did later.

    What it did after the time of its test is nobody's mistake: a pod that is lost days later must not undo it.
    """
    stable = o.app.status.last_stable
    why_not, remedy = _why_nothing_follows(o) if upgrade.epoch else ("", "")
    if not why_not or stable is None or not can_go_on(o, stable) or why_not_rolled_back(o, upgrade):
        return None
    if has_finished(o, upgrade) or not (is_in_time(o, upgrade, now) or was_refused(o, upgrade)):
        return None
    reason = reason_not_built(o)
    # What may still come is tried once it is there: it is the version launched last that is rolled back.
    rejected = o.app.status.applied_spec_hash if reason in MAY_COME else o.spec_hash
    return rolled_back(o, replace(upgrade, to_spec_hash=rejected), stable, Problem(reason, why_not + remedy))


def no_pod_can_be_made(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Refuse a version from which no pod can be made, while the previous one is in force."""
    why_not, remedy = _why_not_launchable(o)
    if not why_not:
        return None
    # Of a rehearsal nothing will come any more.
    asked = offsets_asked(o)  # which may change without another version
    return change(
        upgrade, messages.continues(why_not, remedy), reason_not_built(o), rehearsal=None, starting_offsets=asked
    )


def invalid_edit_condition(asked: Observation, verdict: Verdict, upgrade: UpgradeStatus | None) -> Verdict:
    """Return a verdict about the version under test as one about a later edit that has to wait.

    Args:
        asked: everything that is known, with the edit as the spec.
        verdict: what the rules say of the version under test.
        upgrade: the record as it is written now.
    """
    then = ""  # that version is not under test any more, and the verdict says what follows
    if upgrade is not None and upgrade.phase in UNDER_TEST:
        then = messages.FAILED_STAYS if upgrade.phase is UpgradePhase.FAILED else messages.UPGRADE_CONTINUES
    waits = why_edit_waits(asked)
    assert waits is not None
    message = messages.beside(waits[1], then, verdict.message)
    starts = asked.driver is None and verdict.health is Health.RECONCILING
    if starts or verdict.health is Health.STALLED or verdict.phase is Phase.SUSPENDED:
        return dataclasses.replace(verdict, message=message)
    return dataclasses.replace(verdict, health=Health.STALLED, reason=waits[0], message=message)


def can_go_on(o: Observation, stable: StableSpec | None) -> bool:
    """Return whether a driver can be made of the stable version, as it is recorded."""
    held = with_version(o, stable)
    return held is not None and not why_not_built(held)


def _why_nothing_follows(o: Observation) -> tuple[str, str]:
    """Return why nothing can be launched where nothing runs, and the remedy; empty if something runs, or can."""
    if o.driver is not None or o.app.spec.suspend or o.app.status.last_stable is None:
        return "", ""
    return _why_not_launchable(o)


def _why_not_launchable(o: Observation) -> tuple[str, str]:
    """Return why nothing can come of the spec's version, and its remedy; both are empty if it can be launched."""
    why_not = why_not_built(o)
    return (sentence(why_not), messages.CORRECT_OR_REVERT) if why_not else (why_not_repartitioned(o), "")
