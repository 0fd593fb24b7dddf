"""How long something took, by two times of a status. No I/O."""

from __future__ import annotations

import datetime


def seconds_between(begin: datetime.datetime, end: datetime.datetime) -> float:
    """Return the seconds from one to the other; 0 if a clock was set back meanwhile, or the next leader's is behind.

    A histogram's sum must not fall: Prometheus would take that for a new process, and the whole sum for what was added.
    """
    return max(0.0, (end - begin).total_seconds())
