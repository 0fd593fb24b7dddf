"""Counts an application's final snapshots that were made after a given one, without visiting each. No I/O.

An application may have thousands, and each one that is complete is a reason to judge others again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

from tidegate.api.stream_snapshot import (
    SnapshotPhase,
    StreamSnapshot,
    is_damaged,
    is_scheduled,
    is_to_be_verified,
    owner_uid,
)

_Order = tuple[float, str]
"""Time of creation by the API server's clock, and name."""
_Owner = tuple[str, str, str]
"""Namespace, name and uid of an application."""


@dataclass(frozen=True, slots=True)
class Later:
    """The final snapshots of the same application, by its uid, that were made after one."""

    whole: int = 0
    """Complete, and not found damaged."""
    whole_scheduled: int = 0
    """Those of them that a schedule had taken."""
    scheduled: int = 0
    """All that a schedule had taken, complete or not."""
    known_whole: int = 0
    """Complete, not found damaged, and not still to be read back."""


def is_known_whole(snapshot: StreamSnapshot) -> bool:
    """Return whether a snapshot is complete, and was found whole if anybody wanted to know."""
    return is_whole(snapshot) and not is_to_be_verified(snapshot)


def is_whole(snapshot: StreamSnapshot) -> bool:
    """Return whether a snapshot is complete, and was not found damaged."""
    return snapshot.status.phase is SnapshotPhase.READY and not is_damaged(snapshot)


class History:
    """The final snapshots of each application, in the order in which they were made."""

    def __init__(self) -> None:
        """Start with none."""
        self._whole: dict[_Owner, list[_Order]] = {}
        self._whole_scheduled: dict[_Owner, list[_Order]] = {}
        self._scheduled: dict[_Owner, list[_Order]] = {}
        self._known_whole: dict[_Owner, list[_Order]] = {}

    def add(self, snapshot: StreamSnapshot) -> None:
        """Take in a snapshot, if it is final and known to be an application's."""
        owner = _owner_of(snapshot)
        if owner is None:
            return
        for line in self._lines_of(snapshot):
            insort(line.setdefault(owner, []), _order(snapshot))

    def take(self, snapshot: StreamSnapshot) -> None:
        """Take out a snapshot as it was added."""
        owner, order = _owner_of(snapshot), _order(snapshot)
        if owner is None:
            return
        for line in self._lines_of(snapshot):
            members = line[owner]
            del members[bisect_left(members, order)]
            if not members:
                del line[owner]

    def later(self, snapshot: StreamSnapshot) -> Later:
        """Return what was made after a snapshot, which need not have been added."""
        owner, order = _owner_of(snapshot), _order(snapshot)
        if owner is None:
            return Later()
        lines = (self._whole, self._whole_scheduled, self._scheduled, self._known_whole)
        of_owner = (line.get(owner, []) for line in lines)
        return Later(*(len(members) - bisect_right(members, order) for members in of_owner))

    def _lines_of(self, snapshot: StreamSnapshot) -> list[dict[_Owner, list[_Order]]]:
        """Return in which lines a snapshot stands."""
        if not snapshot.is_final:
            return []
        whole, scheduled = is_whole(snapshot), is_scheduled(snapshot)
        lines = (
            (self._whole, whole),
            (self._whole_scheduled, whole and scheduled),
            (self._scheduled, scheduled),
            (self._known_whole, is_known_whole(snapshot)),
        )
        return [line for line, applies in lines if applies]


def _owner_of(snapshot: StreamSnapshot) -> _Owner | None:
    uid = owner_uid(snapshot)
    return (*snapshot.app_key, uid) if uid else None


def _order(snapshot: StreamSnapshot) -> _Order:
    created = snapshot.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, snapshot.metadata.name)
