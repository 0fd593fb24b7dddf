"""How long a stop waits for a batch: until a deadline, and only while there are executors to compute it. No I/O.

A node's drain takes executors and driver together, and the batch cannot end. A short time without executors is
something else: a lost one is replaced within seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

UNCOMPUTED_SECONDS = 10.0
"""For so long nobody has to have computed a batch until it is given up."""
INTERVAL_SECONDS = 1.0
"""Between two questions whether somebody does."""


class Patience:
    """With one query's batch."""

    def __init__(
        self, deadline: float, is_computed: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Wait until ``deadline`` on the ``clock``; ``is_computed`` returns whether the batch gets on."""
        self._deadline, self._is_computed, self._clock = deadline, is_computed, clock
        self._due = 0.0
        self._uncomputed_since: float | None = None
        self.gave_up = False
        """It ended before the deadline, since nobody computed the batch."""

    def is_over(self) -> bool:
        """Return whether the batch is not waited for any longer; raises what asking raises."""
        now = self._clock()
        if self.gave_up or now >= self._deadline:
            return True
        if now >= self._due:
            self._due = now + INTERVAL_SECONDS
            if self._is_computed():
                self._uncomputed_since = None
            elif self._uncomputed_since is None:
                self._uncomputed_since = now
        since = self._uncomputed_since
        self.gave_up = since is not None and now - since >= UNCOMPUTED_SECONDS
        return self.gave_up
