"""Remembers which objects are gone, so that no cache takes a late version of one for a new object. No I/O.

Caches are filled by watches and by our own writes, in any order.
"""

from __future__ import annotations

from collections import OrderedDict

_REMEMBERED = 4096


class Departed:
    """The uids of the latest objects that are gone: the answer to an own write can come after the news of the end."""

    def __init__(self) -> None:
        """Start with none."""
        self._uids: OrderedDict[str, float] = OrderedDict()

    def note(self, uid: str, version: float = float("inf")) -> None:
        """Note that an object is gone, for ever or, as far as is known, in this version.

        A watch that selects by labels reports an end also when somebody takes a label off: the object may come back.
        """
        self._uids[uid] = max(version, self._uids.get(uid, 0.0))
        if len(self._uids) > _REMEMBERED:
            self._uids.popitem(last=False)

    def __contains__(self, uid: str) -> bool:
        """Return whether the object is known to be gone."""
        return uid in self._uids

    def is_late(self, uid: str, version: float) -> bool:
        """Return whether a version of an object is from before its end."""
        return version <= self._uids.get(uid, -1.0)
