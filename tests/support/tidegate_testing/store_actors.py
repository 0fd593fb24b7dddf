"""Several actors at one store in memory, of whom exactly one moves at a time, and never further than one request.

An actor is a function in a thread of its own. It stops before and after each request to the store until it is told to
go on, or to end there as a killed process does: after it the request was carried out, and nobody saw the answer.
"""

import threading
from collections.abc import Callable
from typing import Any

from tidegate_testing.memory_store import Buckets, Call, MemoryStore


class KilledError(BaseException):
    """The actor's process was killed; no ``except Exception`` survives that."""


def everywhere(call: Call) -> bool:
    """Return that an actor is to stop before and after each of its requests."""
    return True


def _nowhere(call: Call) -> bool:
    return False


class Actor:
    """One actor; ``outcome`` is what its function returned or raised."""

    def __init__(self, name: str, function: Callable[["Actor"], Any]) -> None:
        """Prepare it; it does not move yet."""
        self.name = name
        self._function = function
        self.ended = False
        self.outcome: Any = None
        self.calls: list[Call] = []
        self._killed = False
        self._stops_at: Callable[[Call], bool] = everywhere
        # Plain locks, taken from the first and given free by the other side: what costs least.
        self._go, self._stopped = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._stopped.acquire()
        self._thread: threading.Thread | None = None

    def store(self, buckets: Buckets, bucket: str, page: int = 1000) -> MemoryStore:
        """Return the actor's own way to a bucket."""
        return MemoryStore(buckets, bucket, self._watch, page)

    def step(self, stops_at: Callable[[Call], bool] = everywhere) -> Call | None:
        """Let it go on to its next stop; return the request that it stopped at, None if it has ended.

        Args:
            stops_at: where it is to stop; to change from one thread to the other takes longer than most requests do.
        """
        if self.ended:
            return None
        before, self._stops_at = len(self.calls), stops_at
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        self._go.release()
        if not self._stopped.acquire(timeout=30):
            raise TimeoutError(f"{self.name} does not stop")
        return self.calls[-1] if len(self.calls) > before else None

    def run(self) -> Any:
        """Let it go on to its end; return its outcome."""
        if self._thread is None and not self.ended:
            # Most actors are never stopped. They need no thread, which takes longer than what they do.
            self._stops_at = _nowhere
            self._act()
        while not self.ended:
            self.step(_nowhere)
        return self.outcome

    def kill(self) -> None:
        """End it where it is."""
        self._killed = True
        while not self.ended:
            self.step()
        if self._thread is not None:
            self._thread.join(30)

    def _run(self) -> None:
        self._go.acquire()
        try:
            self._act()
        finally:
            self._stopped.release()

    def _act(self) -> None:
        try:
            if not self._killed:
                self.outcome = self._function(self)
        except BaseException as error:
            self.outcome = error
        finally:
            self.ended = True

    def _watch(self, call: Call) -> None:
        if self._killed:
            raise KilledError(self.name)
        self.calls.append(call)
        if not self._stops_at(call):
            return
        self._stopped.release()
        self._go.acquire()
        if self._killed:
            raise KilledError(self.name)
