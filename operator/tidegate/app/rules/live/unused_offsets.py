"""Offsets of ``spec.upgrade.startingOffsets`` that are not in use: a condition says why, and what to do. No I/O.

An edit of them stops nothing and makes no version. Who has set them, and sees nothing happen, finds the reason here.
"""

from __future__ import annotations

from tidegate.api.streaming_app import Condition, UpgradeMode
from tidegate.app.observation import Observation
from tidegate.app.rules import messages
from tidegate.app.rules.present_condition import present_condition
from tidegate.app.rules.upgrade.record import UNDER_TEST, UNDER_WAY
from tidegate.app.rules.upgrade.repartition.phase import wanted_repartition
from tidegate.app.rules.upgrade.starting_offsets import are_older, offsets_asked, were_left_out, why_unreadable
from tidegate_spark.contract.reasons import Reason

OFFSETS_UNUSED = "StartingOffsetsUnused"
"""Type of the condition."""


def offsets_condition(o: Observation, now: float) -> tuple[Condition, ...]:
    """Return the condition of offsets that are not in use; none if they are, were, or there are none."""
    asked, status = o.app.spec.upgrade.starting_offsets, o.app.status
    if asked is None or not status.lineage:
        return ()
    if asked.lineage == status.lineage or offsets_asked(o):
        message = _why_unused(o)
    else:
        is_meant = asked.lineage > status.lineage or are_older(o.app) or were_left_out(o, asked)
        message = messages.offsets_of_another(asked.lineage, status.lineage) if is_meant else ""
    return present_condition(o, OFFSETS_UNUSED, Reason.STARTING_OFFSETS_UNUSED, message, now)


def _why_unused(o: Observation) -> str:
    """Return as text why offsets of the present lineage are not used, empty if they are about to be."""
    status, upgrade = o.app.status, o.app.status.upgrade
    is_under_way = upgrade is not None and upgrade.phase in UNDER_WAY
    if upgrade is not None and is_under_way and upgrade.starting_offsets and not upgrade.epoch:
        return ""
    # The version in force has the number of partitions that it had.
    repartitions = is_under_way and upgrade is not None and upgrade.repartition is not None
    why = (
        (are_older(o.app), messages.OFFSETS_OLDER),
        (o.app.spec.upgrade.mode is UpgradeMode.STATELESS, messages.OFFSETS_WITHOUT_STATE),
        (status.last_stable is None, messages.OFFSETS_NEED_STABLE),
        (repartitions or wanted_repartition(o) is not None, messages.OFFSETS_AFTER_REPARTITION),
    )
    is_tested = upgrade is not None and upgrade.phase in UNDER_TEST and bool(upgrade.epoch)
    of_next = messages.OFFSETS_AFTER_TEST if is_tested else messages.OFFSETS_OF_NEXT
    return next((message for is_so, message in why if is_so), why_unreadable(o) or of_next)
