"""Says to a script's threads that its main thread has ended, which goes on here as the driver's. Changes that thread.

Threads that are no daemons work "as long as the main thread is alive"; the interpreter waits for them. Source:
``threading._shutdown``, which ends the main thread, for ``is_alive`` and ``join``, before it waits for the others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


def guard_main_thread() -> Callable[[], None]:
    """Return what says, once it is called, that the script has come to its end; a child that it forks has its own."""
    thread, own, ended = threading.main_thread(), os.getpid(), threading.Event()
    is_alive, join = thread.is_alive, thread.join

    def is_alive_for_script() -> bool:
        return is_alive() and not (ended.is_set() and os.getpid() == own)

    def join_for_script(timeout: float | None = None) -> None:
        if os.getpid() != own or threading.current_thread() is thread:
            join(timeout)
        else:
            ended.wait(timeout if timeout is None else max(timeout, 0))

    thread.is_alive, thread.join = is_alive_for_script, join_for_script  # type: ignore[method-assign] # of this one only
    return ended.set
