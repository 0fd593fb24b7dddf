"""Counts how often in a row a key's plan ended early, and when that is too often. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

import structlog

from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError

LOOKS_IN_A_ROW = 5
"""Plans given up half way, one after the other, before a key has to wait like after a failure."""
log = structlog.get_logger()


@dataclass(slots=True)
class RetryLimiter:
    """Counts by key."""

    _given_up: dict[Key, int] = field(default_factory=dict)

    def again(self, key: Key, reason: str) -> float:
        """Note that a plan was given up; return the seconds until the next look, which is at once.

        Raises:
            RetryLaterError: that was one time too many.
        """
        times = self._given_up[key] = self._given_up.get(key, 0) + 1
        log.info("looked at again", why=reason)
        if times >= LOOKS_IN_A_ROW:
            raise RetryLaterError(f"the plan was given up {times} times in a row, the last time because {reason}")
        return 0.0

    def forget(self, key: Key) -> None:
        """Note that a plan was carried out, or that there is nothing more to plan for."""
        self._given_up.pop(key, None)
