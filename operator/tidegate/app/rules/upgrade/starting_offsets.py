"""Whether the next version keeps the state and reads topics from the offsets of the spec. No I/O.

``spec.upgrade.startingOffsets`` names the lineage that is left. So it is used once, and may stay in a manifest. Numbers
of lineages are alike in all applications: what the spec has before there is a status was meant for another application.
"""

from __future__ import annotations

import hashlib

import msgspec

from tidegate.api.streaming_app import (
    StreamingApp,
    StreamingAppStatus,
    UpgradeMode,
    UpgradeOffsets,
    UpgradeStatus,
)
from tidegate.api.values.errors import SpecError
from tidegate.app.builders.starting_offsets import OF_UPGRADE, refuse_unreadable_offsets
from tidegate.app.observation import Observation
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.repartition.phase import wanted_repartition
from tidegate_spark.contract.reasons import Reason


def offsets_asked(o: Observation) -> str:
    """Return the offsets with which the next version starts, empty if it goes on where the application is.

    State that is to be repartitioned, or given up, has a lineage of its own, and goes first; and without a stable
    version there is nothing that could be rolled back to where the topics were read before.
    """
    asked, stable = o.app.spec.upgrade.starting_offsets, o.app.status.last_stable
    if asked is None or stable is None or not _names_present_state(o, asked) or are_older(o.app):
        return ""
    if o.app.spec.upgrade.mode is UpgradeMode.STATELESS or wanted_repartition(o) is not None:
        return ""
    return asked.offsets


def _names_present_state(o: Observation, asked: UpgradeOffsets) -> bool:
    """Return whether offsets are for the present lineage, or for the one whose state it has since a rollback."""
    status, upgrade = o.app.status, o.app.status.upgrade
    if asked.lineage == status.lineage:
        return True
    if upgrade is None:
        return False
    if upgrade.reason == Reason.SUPERSEDED and asked.lineage == rolled_back_from(upgrade):
        return True
    # The version that followed that rollback has a record of its own by now: until its launch, the rollback's is known
    # by where it started. With offsets it was no such rollback, and they would be used twice.
    began = status.start_from
    if upgrade.epoch or not upgrade.starting_offsets or began is None or began.offsets:
        return False
    return (began.lineage, began.undone_lineage) == (status.lineage, asked.lineage)


def rolled_back_from(upgrade: UpgradeStatus) -> int:
    """Return the lineage to whose state an upgrade was rolled back, 0 if it was not."""
    snapshot = upgrade.rollback_snapshot
    return snapshot.lineage if upgrade.is_rolled_back and snapshot is not None else 0


def why_unreadable(o: Observation) -> str:
    """Return as text why the offsets that are asked for cannot be used, empty if they can, or there are none."""
    try:
        refuse_unreadable_offsets(offsets_asked(o), OF_UPGRADE)
    except SpecError as error:
        return messages.offsets_unreadable(error)
    return ""


def offsets_before_launch(o: Observation, upgrade: UpgradeStatus) -> str:
    """Return the offsets with which a version starts that was not launched yet: an edit counts until then.

    One that says nothing changes nothing about the upgrade under way.
    """
    return upgrade.starting_offsets if why_unreadable(o) else offsets_asked(o)


def are_older(app: StreamingApp) -> bool:
    """Return whether the spec has had these offsets since they could not be used, and nobody has set them again."""
    asked = app.spec.upgrade.starting_offsets
    return asked is not None and app.status.ignored_starting_offsets == _digest(asked)


def ignored_offsets(o: Observation) -> str:
    """Return what the status is to say of offsets that have no effect, empty if the spec has others, or none.

    Without a status nobody knows whether they were used. Who names a lineage that is not there yet cannot know what it
    will be. One that was left without them does not come again.
    """
    asked, status = o.app.spec.upgrade.starting_offsets, o.app.status
    if asked is None:
        return ""
    begins = not status.epoch or status.observed_generation < 1
    early = 0 < status.lineage < asked.lineage
    return _digest(asked) if begins or early or are_older(o.app) or were_left_out(o, asked) else ""


def with_ignored_offsets(o: Observation, status: StreamingAppStatus) -> StreamingAppStatus:
    """Return a status to which epoch and lineage were adopted, with the offsets that had no effect in the observed one.

    Offsets that were set for the lineage that is adopted look like those that named it before it was there.
    """
    return msgspec.structs.replace(status, ignored_starting_offsets=ignored_offsets(o))


def were_left_out(o: Observation, asked: UpgradeOffsets) -> bool:
    """Return whether the last upgrade left the lineage of these offsets without them, or they were rolled back."""
    status, upgrade = o.app.status, o.app.status.upgrade
    if upgrade is None or upgrade.rollback_snapshot is None or _names_present_state(o, asked):
        return False
    if upgrade.rollback_snapshot.lineage != asked.lineage:
        return False
    if rolled_back_from(upgrade):
        return True
    began = status.start_from
    # A version that was refused since has the rollback snapshot of the one that used them.
    used = began is not None and (began.undone_lineage, began.offsets) == (asked.lineage, asked.offsets)
    return upgrade.starting_offsets != asked.offsets and not used


def _digest(asked: UpgradeOffsets) -> str:
    return hashlib.sha256(f"{asked.lineage}/{asked.offsets}".encode()).hexdigest()[:16]
