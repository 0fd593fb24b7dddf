"""Defers a new number of state partitions until a stable version runs. No I/O.

Only a stable version's state can be repartitioned: its copy shows beforehand whether that is possible, and the version
can go on if it fails. Until then decisions use the spec with the number that the state has.
"""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Phase, RepartitionResult, UpgradeMode, UpgradePhase, UpgradeStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.launch import MAY_COME
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.adoption import runs_spec_elsewhere
from tidegate.app.rules.upgrade.record import Step, applied
from tidegate.app.rules.upgrade.repartition import messages as texts
from tidegate.app.rules.upgrade.repartition.phase import is_another_asked_for, wanted_repartition
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.reasons import Reason

_LAUNCHED = frozenset({UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.FAILED})
"""Phases in which a version that is not stable runs, or is followed by another such one, if one was launched."""
_GIVEN_UP = frozenset({UpgradePhase.REFUSED, UpgradePhase.ROLLED_BACK})
"""Phases in which a version is not tried again before the spec changes."""
_UNUSABLE = frozenset({Reason.INVALID_SPEC, Reason.CONFIGURATION_TOO_LONG, *MAY_COME})
"""Reasons of an upgrade of whose version no pod can be made."""


def is_deferred(o: Observation) -> bool:
    """Return whether the spec's number of partitions has to wait."""
    status, spec = o.app.status, o.app.spec
    if status.state_partitions in (0, spec.state.partitions) or _is_not_asked(o):
        return False
    stable, upgrade, began = status.last_stable, status.upgrade, status.start_from
    if stable is None:
        # Before its first batch there is nothing that could be divided, and the number is taken as it is. A snapshot's
        # state keeps its own until somebody asks for another.
        return status.batch is not None and began is None and o.spec_hash != status.applied_spec_hash
    if upgrade is None or o.spec_hash in (upgrade.to_spec_hash, stable.spec_hash):
        return False  # it is what is under way, or what there was before
    if began is not None and began.lineage == status.lineage and not began.has_started:
        return True  # it is not known yet if a rollback's lineage has all that it starts from: its driver fills it
    if status.lineage == stable.lineage and not is_another_asked_for(spec, stable):
        return False  # as the stable version, which runs on state in another number
    return _is_unproven(upgrade)


def _is_not_asked(o: Observation) -> bool:
    """Return whether the number in the status is not that of the state which the spec's version has, or is to have."""
    return _gives_up_state(o) or runs_spec_elsewhere(o)


def _gives_up_state(o: Observation) -> bool:
    """Return whether the next version starts with nothing: the spec says so, or did before what runs was stopped."""
    upgrade, stateless = o.app.status.upgrade, UpgradeMode.STATELESS
    if o.app.spec.upgrade.mode is stateless or upgrade is None:
        return o.app.spec.upgrade.mode is stateless
    return upgrade.mode is stateless and upgrade.phase is UpgradePhase.STOPPING and not upgrade.epoch


def _is_unproven(upgrade: UpgradeStatus) -> bool:
    """Return whether a version that was not stable runs, or is about to."""
    if upgrade.epoch:
        return upgrade.phase in _LAUNCHED
    # The previous version is being stopped for something else, and nobody has asked what its state is.
    known = upgrade.repartition
    repartitions = known is not None and known.result != RepartitionResult.NOT_NEEDED
    return upgrade.phase is UpgradePhase.STOPPING and not repartitions


def with_kept_number(o: Observation) -> Observation:
    """Return the observation with the number that the state has in place of the spec's, as long as that has to wait."""
    if not is_deferred(o):
        return o
    state = replace(o.app.spec.state, partitions=o.app.status.state_partitions)
    app = replace(o.app, spec=replace(o.app.spec, state=state))
    return dataclasses.replace(o, app=app, spec_hash=spec_hash(app))


def about_all(step: Step | None, o: Observation, asked: Observation) -> Step | None:
    """Return a step by which a version is rolled back, or found unusable, as one about all that ``asked`` asks for.

    What has failed is not tried once more, together with another number. While no version is stable the number waits
    whatever the record says, and one about all would be about another version than the one that is decided about.
    """
    upgrade = step.upgrade if step is not None else None
    if step is None or upgrade is None or upgrade.to_spec_hash != o.spec_hash:
        return step
    if applied(o.app.status, step).last_stable is None:
        return step
    if upgrade.phase is not UpgradePhase.ROLLING_BACK and upgrade.reason not in _UNUSABLE:
        return step
    return dataclasses.replace(step, upgrade=replace(upgrade, to_spec_hash=asked.spec_hash))


def deferred_condition(asked: Observation, verdict: Verdict) -> Verdict:
    """Return the verdict with what becomes of a number of partitions that waits, or comes when a suspension ends.

    In whatever state the driver is: whoever has edited the number looks now, and a start or a failure may take long.
    """
    if not is_deferred(asked):
        return _with_repartition_to_come(asked, verdict)
    remedy = texts.RESUME_FIRST if asked.app.spec.suspend else ""
    remedy = texts.FIX_FIRST if verdict.phase is Phase.FAILED else remedy  # who is stable is so by its batches
    message = messages.beside(verdict.message, _deferred(asked), remedy)
    if verdict.phase is not Phase.RUNNING or verdict.health is Health.STALLED:
        return dataclasses.replace(verdict, message=message)
    reason = Reason.STATE_PARTITIONS_KEPT if verdict.health is Health.READY else verdict.reason
    return dataclasses.replace(verdict, health=Health.RECONCILING, reason=reason, message=message)


def _with_repartition_to_come(asked: Observation, verdict: Verdict) -> Verdict:
    """Say what comes of the number when a suspended application goes on; nothing begins before."""
    wanted, upgrade = wanted_repartition(asked), asked.app.status.upgrade
    if not asked.app.spec.suspend or wanted is None or verdict.phase not in (Phase.SUSPENDED, Phase.STOPPING):
        return verdict
    if upgrade is not None and upgrade.to_spec_hash == asked.spec_hash and upgrade.phase in _GIVEN_UP:
        return verdict  # it is not tried again
    message = messages.beside(verdict.message, texts.number_follows(wanted.from_partitions, wanted.partitions))
    return dataclasses.replace(verdict, message=message)


def deferred_event(asked: Observation) -> tuple[PublishEvent, ...]:
    """Return the event of a number that waits, when the spec that asks for it is first reconciled."""
    generation = asked.app.metadata.generation
    if asked.app.status.observed_generation == generation or not is_deferred(asked):
        return ()
    return (PublishEvent(Reason.STATE_PARTITIONS_KEPT, _deferred(asked), False, f"{generation}"),)


def _deferred(asked: Observation) -> str:
    return texts.number_deferred(asked.app.status.state_partitions, asked.app.spec.state.partitions)
