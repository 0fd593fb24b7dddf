"""Which resources are created now, and which wait because the API server refused them before. No I/O.

A ResourceQuota or a failing webhook lasts for hours, and each answer of such a webhook takes seconds. So of what was
tried before one is tried in each pause, the one that waits longest, and the others follow at once when it is created.
What was not tried yet does not wait for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.cache.process_state import NotCreated
from tidegate.engine.rules.pauses import NOT_CREATED_PAUSE, time_left


def created_now(
    not_created: Mapping[str, NotCreated], wanted: Iterable[str], now: float
) -> tuple[frozenset[str], float | None]:
    """Return the names of those that are created now, and in how many seconds the next is tried again.

    Args:
        not_created: what could not be created, by its name.
        wanted: names of resources of one kind that are to be there.
        now: seconds since the epoch.
    """
    names = frozenset(wanted)
    waiting = {name: not_created[name] for name in names if name in not_created}
    if not waiting:
        return names, None
    longest = min(waiting, key=lambda name: (waiting[name].at, name))
    tried_again = max((it.at for it in waiting.values() if it.attempts > 1), default=waiting[longest].at)
    left = max(time_left(at, NOT_CREATED_PAUSE, now) for at in (waiting[longest].at, tried_again))
    return names - waiting.keys() | ({longest} if not left else set()), left or None
