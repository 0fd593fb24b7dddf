"""Pauses before another attempt, and how long what is deleted waits for a storage. No I/O, no clock."""

from __future__ import annotations

import zlib

from tidegate.api.streaming_app import Metadata
from tidegate.api.values.times import growing_pause

METRICS_INTERVAL = 60.0
"""Seconds between two writes of nothing but progress."""


PATIENCE = 300.0
"""Seconds from the deletion until it is given up: the origin's storage may be gone for good."""


EVENT_SECONDS = 3600.0
"""Seconds for which the API server keeps an event, by default."""


FIRST_REFUSED_PAUSE, LONGEST_REFUSED_PAUSE = 5.0, 300.0


NOT_CREATED_PAUSE = 30.0
"""Seconds until another attempt at what the API server does not let us do, such as to create a snapshot while a webhook
fails."""


def refused_for(at: float, attempts: int, now: float) -> float:
    """Return for how many seconds a pod that was refused ``at`` a time is not tried again; 0 if it is to be now."""
    return time_left(at, growing_pause(attempts, FIRST_REFUSED_PAUSE, LONGEST_REFUSED_PAUSE), now)


def time_left(since: float, pause: float, now: float) -> float:
    """Return the seconds left of a pause that this process noted the beginning of; 0 if it is over.

    A beginning that is still to come was noted before somebody set the clock back: nobody waits until it comes again.
    """
    return max(0.0, since + pause - now) if since <= now else 0.0


def clocks_time_left(since: float, pause: float, now: float) -> float:
    """Return the seconds left of a pause whose beginning is by another clock, such as a node's or the API server's.

    That one may be ahead of ours, by no more than the pause: until its time has come all of the pause is left, so
    twice the pause is the longest. A beginning that is further ahead is not believed, and the pause is over.
    """
    return max(0.0, min(pause, since + pause - now)) if since <= now + pause else 0.0


def patience_left(metadata: Metadata, now: float) -> float:
    """Return for how many seconds a storage that may be gone is still waited for by what is being deleted.

    None if it was deleted long ago, or by a clock that is that far ahead of ours: then it is given up as it is.
    """
    deleted = metadata.deletion_timestamp
    return clocks_time_left(deleted.timestamp(), PATIENCE, now) if deleted is not None else 0.0


def hour_of(now: float) -> str:
    """Return the hour, as a part of an event's occasion: what lasts is published again when its event is forgotten."""
    return f"{now // EVENT_SECONDS:.0f}"


def minutes_of(uid: str) -> float:
    """Return seconds of an hour, always the same of an object: with these added to the time, hours begin apart."""
    return zlib.crc32(uid.encode("utf-8", "replace")) % EVENT_SECONDS


def next_hour_in(now: float) -> float:
    """Return in how many seconds :func:`hour_of` is another one."""
    return EVENT_SECONDS - now % EVENT_SECONDS
