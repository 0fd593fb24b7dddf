"""An event loop whose time is a number: sleeping costs nothing, and the same program runs the same way twice."""

import asyncio
from typing import Any


class StuckError(Exception):
    """Nothing is ready and no timer is set: whatever is awaited never comes."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs whatever is ready; when nothing is, it goes forward in time to the next timer.

    It is its own selector: there are no files to wait for, so waiting is where time passes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._clock_resolution = 1e-9
        self._selector = self

    def time(self) -> float:
        """Return the seconds since the loop was made."""
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Let time pass until the next timer."""
        if timeout is None:
            raise StuckError
        if timeout > 0:
            scheduled: Any = self._scheduled  # type: ignore[attr-defined] # the base class's heap of timers
            self._now = max(self._now, scheduled[0].when())
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
