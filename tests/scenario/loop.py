"""An event loop whose time is a number: sleeping costs nothing, and the same program runs the same way twice."""

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context, copy_context
from itertools import count
from typing import Any, TypeVarTuple

Ts = TypeVarTuple("Ts")


class StuckError(Exception):
    """Nothing is ready and no timer is set: whatever is awaited never comes."""


class _Call(asyncio.TimerHandle):
    """A handle without what only debugging needs: there are hundreds of them in each schedule."""

    __slots__ = ()

    def __init__(
        self, loop: asyncio.AbstractEventLoop, callback: Callable[..., Any], args: Any, context: Context | None
    ) -> None:
        self._loop = loop
        self._callback: Callable[..., Any] | None = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled, self._callback, self._args = True, None, ()

    def cancelled(self) -> bool:
        return self._cancelled


def _wake(awaited: asyncio.Future[None]) -> None:
    if not awaited.done():
        awaited.set_result(None)


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs whatever is ready; when nothing is, it goes forward in time to the next timer.

    There are no files to wait for, so there is no selector, and the base class's turn is replaced by a shorter one.
    Timers of the same time are run in the order in which they were set.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._timers: list[tuple[float, int, _Call]] = []
        self._numbers = count()

    def time(self) -> float:
        """Return the seconds since the loop was made."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have something called at a time."""
        timer = _Call(self, callback, args, context)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have something called after some seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Have something called in the next turn."""
        handle = _Call(self, callback, args, context)
        self._ready.append(handle)  # type: ignore[attr-defined] # the base class's queue
        return handle

    def sleep(self, seconds: float) -> asyncio.Future[None]:
        """Return what is done after some seconds: ``asyncio.sleep`` with less between the task and its timer."""
        awaited: asyncio.Future[None] = self.create_future()
        self.call_at(self._now + seconds, _wake, awaited)
        return awaited

    def _run_once(self) -> None:
        ready: Any = self._ready  # type: ignore[attr-defined] # the base class's queue
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise StuckError
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            timer = heapq.heappop(timers)[2]
            if not timer._cancelled:
                ready.append(timer)
        for _ in range(len(ready)):
            call = ready.popleft()
            if not call._cancelled:
                try:
                    call._context.run(call._callback, *call._args)
                except Exception as error:
                    self.call_exception_handler({"message": f"{call._callback} failed", "exception": error})

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
