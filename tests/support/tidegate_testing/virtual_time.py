"""Time that passes only where everything waits for it: an hour of pauses takes as long as its computations. No I/O."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Goes to the next timer at once when nothing else is to be done."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined] # asyncio's own, since it is there
            self._now = max(self._now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run_in_virtual_time(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run what uses asyncio's clock and no sockets; returns its result."""
    with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
        return runner.run(coroutine)
