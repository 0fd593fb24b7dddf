"""Which pods of rehearsals there are to be: one while a rehearsal is under way, and none otherwise. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.decide.actions import Action, ConfirmRecord, CreateRehearsal, DeleteRehearsal, EnsureAccess
from tidegate.decide.launch import provide, refused_for, time_left
from tidegate.decide.upgrades.rehearsal_results import find_pod, has_ended
from tidegate.model.errors import SpecError
from tidegate.model.streaming_app import UpgradePhase, UpgradeStatus
from tidegate.observe.observation import Observation
from tidegate.resources.names import rehearsal_pod_name
from tidegate.resources.rehearsal_pod import build_rehearsal

RETRY_PAUSE = 15.0
"""Seconds from the creation of a pod that ended without a word until it is made again: a node may refuse it at once."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is to be done about the pods, and when to check again."""

    actions: tuple[Action, ...] = ()
    wake_after: float | None = None


NOTHING = Kept()


def keep_rehearsal(o: Observation, now: float) -> Kept:
    """Return what is to be done about the pods of rehearsals.

    Args:
        o: everything that is known, with the spec's version, and the record as it is written by now.
        now: seconds since the epoch.
    """
    upgrade = wanted_for(o)
    mine = find_pod(o, upgrade) if upgrade is not None else None
    removed = tuple(DeleteRehearsal(pod) for pod in o.rehearsals if pod is not mine and not pod.terminating)
    if upgrade is None:
        return Kept(removed)
    if mine is None:
        name = rehearsal_pod_name(o.app.metadata.name, upgrade.number)
        if any(pod.name == name for pod in o.rehearsals):
            return Kept(removed)  # another version's, which is on its way out
        if o.driver is None:
            return Kept(removed)  # what room there is, is the driver's
        kept = _create(o, name, now)
        return Kept((*removed, *kept.actions), kept.wake_after)
    if has_ended(mine) and not mine.terminating:
        left = time_left(mine.created_at, RETRY_PAUSE, now)
        return Kept(removed, left) if left else Kept((*removed, DeleteRehearsal(mine)))
    return Kept(removed)


def wanted_for(o: Observation) -> UpgradeStatus | None:
    """Return the upgrade whose version is to be rehearsed now, None if none is."""
    upgrade, spec = o.app.status.upgrade, o.app.spec
    if upgrade is None or upgrade.phase is not UpgradePhase.REHEARSING or upgrade.to_spec_hash != o.spec_hash:
        return None
    rehearsal = upgrade.rehearsal
    begun = rehearsal is not None and rehearsal.start_time is not None and not rehearsal.result
    return upgrade if begun and spec.upgrade.rehearsal is not None and not spec.suspend else None


def _create(o: Observation, name: str, now: float) -> Kept:
    refusal = o.memory.refusal
    if refusal is not None and refusal.pod_name == name:
        left = refused_for(refusal.at, refusal.attempts, now)
        if left:
            return Kept(wake_after=left)
    try:
        built = build_rehearsal(o.app, o.platform)
    except SpecError:
        return NOTHING  # given up when its time is over; of the driver's pod it was tried when the upgrade began
    # A driver that an earlier operator launched runs as another account: that it is well says nothing of this one.
    access: tuple[Action, ...] = () if o.app.spec.service_account_name else (EnsureAccess(),)
    # A leader of the last second may see a record that says so no more.
    return Kept((*access, ConfirmRecord(), CreateRehearsal(built.manifest), *provide(built)))
