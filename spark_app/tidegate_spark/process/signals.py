"""Handles SIGTERM whatever the script's thread is doing. Changes the process's signal handlers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable

SIGTERM_ALONE = frozenset({signal.SIGTERM})


def watch_signals(on_stop: Callable[[], None], numbers: frozenset[signal.Signals] = SIGTERM_ALONE) -> None:
    """Call ``on_stop()``, in a thread, at each of these signals that this very process gets.

    The byte that Python's C handler writes to the wake-up descriptor arrives even while the main thread is inside a
    long call into native code. A script may take the descriptor away; so a driver's stops do not come by signals
    (:mod:`tidegate_spark.driver.first_process`).
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in numbers:
        signal.signal(number, _note_nothing)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    os.register_at_fork(after_in_child=lambda: _forget(numbers))

    def read() -> None:
        _ = writer  # the descriptor is only borrowed by set_wakeup_fd and must stay open
        while received := reader.recv(64):
            if not numbers.isdisjoint(received):
                on_stop()

    threading.Thread(target=read, name="signals", daemon=True).start()


def signal_script() -> bool:
    """Let the script's own handler of SIGTERM run, in its thread, if it has one; return whether it has.

    A handler in Python, of ``signal.signal`` or of asyncio. One that a library set in C may end the process at once,
    and is not called.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler) or handler is _note_nothing:
        return False
    os.kill(os.getpid(), signal.SIGTERM)
    return True


def _forget(numbers: frozenset[signal.Signals]) -> None:
    """Let a child process be as any other: it ends at such a signal, and does not report it to this one."""
    signal.set_wakeup_fd(-1)
    for number in numbers:
        if signal.getsignal(number) is _note_nothing:
            signal.signal(number, signal.SIG_DFL)


def _note_nothing(number: int, frame: object) -> None:
    """Be a handler, so that the signal ends nothing: the wake-up descriptor reports it."""
