"""The registry: every reason with its entry. No I/O."""

from __future__ import annotations

from dataclasses import replace

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.areas import (
    autoscaling,
    channels,
    deletion,
    driver,
    exports,
    forks,
    messages,
    pods,
    queries,
    rehearsals,
    snapshots,
    storage,
    upgrades,
)
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREAS: tuple[Area, ...] = (
    driver.AREA,
    queries.AREA,
    pods.AREA,
    storage.AREA,
    deletion.AREA,
    upgrades.AREA,
    rehearsals.AREA,
    snapshots.AREA,
    forks.AREA,
    exports.AREA,
    messages.AREA,
    channels.AREA,
    autoscaling.AREA,
)
"""In the order in which the documentation lists them."""

_ENTRIES: dict[Reason, Entry] = {
    entry.reason: entry if entry.page else replace(entry, page=area.page) for area in AREAS for entry in area.entries
}


def entry_of(reason: Reason) -> Entry:
    """Return what is known of a reason.

    Raises:
        KeyError: the reason has no entry; a test sees to it that only ``Reason.NONE`` has none.
    """
    return _ENTRIES[reason]


def remedy_of(reason: Reason) -> str:
    """Return what a person does about it, as one or more sentences; empty if there is nothing to do."""
    return _ENTRIES[reason].remedy


def fault_of(reason: Reason) -> Fault:
    """Return whose fault it is."""
    return _ENTRIES[reason].fault


def is_of_version(reason: Reason) -> bool:
    """Return whether a failure speaks against the version that ran: a gate fails for it, and the policy Never obeys it.

    Data that this version found damaged count as well: its rollback restores others. What the environment or the
    cluster did is waited for, and so is what a rollback would not change.
    """
    return fault_of(reason) in (Fault.VERSION, Fault.DATA) and not outlasts_rollback(reason)


def outlasts_rollback(reason: Reason) -> bool:
    """Return whether the previous version fails equally, as a rule: no work is undone for it, however long it lasts."""
    return _ENTRIES[reason].outlasts_rollback


def start_fixes(reason: Reason) -> bool:
    """Return whether the driver that ended with it may do better when started again; of ``NONE`` nothing is known."""
    return reason not in _ENTRIES or _ENTRIES[reason].start_fixes


def is_retried(reason: Reason) -> bool:
    """Return whether a driver that ended for good (exit code 0) with it is started again all the same."""
    return reason in _ENTRIES and _ENTRIES[reason].retried


def reasons_at(place: Place) -> tuple[Reason, ...]:
    """Return the reasons that can be seen at one place, in the order of the areas."""
    return tuple(entry.reason for entry in _ENTRIES.values() if place in entry.places)
