"""The new version shows on a copy of the state what it does, while the previous version runs. No I/O.

Only a failure holds it back. Without a result the upgrade goes on: an application that has no input for a while, or a
cluster without room, would otherwise never get another version, and the gate is still to come.
"""

from __future__ import annotations

import msgspec

from tidegate.decide.upgrades import messages
from tidegate.decide.upgrades.rehearsal_results import Outcome, result_of
from tidegate.decide.upgrades.step import MOST_OBSOLETE, REHEARSAL_REASONS, Step, moved
from tidegate.model.streaming_app import RehearsalStatus, RehearsedQuery, UpgradePhase, UpgradeStatus
from tidegate.observe.observation import Observation
from tidegate.observe.pods import time_from_seconds
from tidegate_spark.reasons import Reason
from tidegate_spark.rehearsal_protocol import RehearsalResult

_BEFORE_A_LAUNCH = frozenset({UpgradePhase.REFUSED, UpgradePhase.WITHDRAWN})


def begin_rehearsal(upgrade: UpgradeStatus, now: float) -> Step:
    """Return the intent to rehearse on the copy that is complete now."""
    message = messages.REHEARSING
    rehearsal = RehearsalStatus(start_time=time_from_seconds(now))
    return Step(moved(upgrade, UpgradePhase.REHEARSING, Reason.COPIED, message, now, rehearsal=rehearsal))


def left_out(o: Observation, why: str, now: float) -> RehearsalStatus | None:
    """Return the record of a rehearsal that was asked for and is not to be had, None if nobody asked."""
    if o.app.spec.upgrade.rehearsal is None:
        return None
    what, result = Reason.NO_COPY, RehearsalResult.INCONCLUSIVE.value
    return RehearsalStatus(result=result, cause=what, message=why, completion_time=time_from_seconds(now))


def follow_rehearsal(o: Observation, now: float) -> Step | None:
    """Record what the rehearsal came to, and what follows; one that was interrupted by a pause begins again."""
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase is not UpgradePhase.REHEARSING or upgrade.to_spec_hash != o.spec_hash:
        return None
    known = upgrade.rehearsal or RehearsalStatus()
    wanted = o.app.spec.upgrade.rehearsal
    if wanted is None:
        cancelled = Outcome(RehearsalResult.INCONCLUSIVE, Reason.STOPPED, messages.REHEARSAL_CANCELLED)
        return _ended(upgrade, known, cancelled, now)
    if o.app.spec.suspend:
        # Its pod is removed, as the driver's is.
        return _begun(upgrade, known, None) if known.start_time is not None else None
    if known.start_time is None:
        return _begun(upgrade, known, now)
    outcome = result_of(o, upgrade, known, wanted, now)
    return _ended(upgrade, known, outcome, now) if outcome is not None else None


def let_go_of_copy(o: Observation, now: float) -> Step | None:
    """Have the copy removed of a version that will not be launched: nothing else needs it."""
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase not in _BEFORE_A_LAUNCH or upgrade.epoch or upgrade.previous is not None:
        return None  # what was launched, or is the pin of the upgrade before, may not be complete yet
    pin = upgrade.rollback_snapshot
    if pin is None or not pin.copy or o.rehearsals:
        return None
    obsolete = tuple(dict.fromkeys((*upgrade.obsolete, pin.copy)))[-MOST_OBSOLETE:]
    return Step(
        msgspec.structs.replace(upgrade, rollback_snapshot=msgspec.structs.replace(pin, copy=""), obsolete=obsolete)
    )


def _begun(upgrade: UpgradeStatus, known: RehearsalStatus, at: float | None) -> Step:
    started = time_from_seconds(at) if at is not None else None
    return Step(msgspec.structs.replace(upgrade, rehearsal=msgspec.structs.replace(known, start_time=started)))


def _ended(upgrade: UpgradeStatus, known: RehearsalStatus, outcome: Outcome, now: float) -> Step:
    batches = tuple(RehearsedQuery(name=name, committed=number) for name, number in sorted(outcome.batches.items()))
    rehearsal = msgspec.structs.replace(
        known,
        result=outcome.result.value,
        cause=outcome.what,
        batches=batches,
        message=outcome.message,
        completion_time=time_from_seconds(now),
    )
    if outcome.result is RehearsalResult.FAILED:
        message = messages.rehearsal_failed(outcome.message)
        return Step(
            moved(upgrade, UpgradePhase.REFUSED, Reason.REHEARSAL_FAILED, message, now, rehearsal=rehearsal),
            warning=True,
        )
    message = messages.rehearsal_passed(outcome.message)
    if outcome.result is RehearsalResult.INCONCLUSIVE:
        message = messages.rehearsal_inconclusive(outcome.message)
    reason = REHEARSAL_REASONS[outcome.result]
    return Step(moved(upgrade, UpgradePhase.STOPPING, reason, message, now, rehearsal=rehearsal))
