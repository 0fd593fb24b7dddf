"""Handles SIGTERM whatever the script's thread is doing. Changes the process's signal handlers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tidegate_spark.process.this_process import InPlaceOf

SIGTERM_ALONE = frozenset({signal.SIGTERM})
_WAITS = ("sigwait", "sigwaitinfo", "sigtimedwait")
"""Python's functions that wait for a signal, which no handler gets then."""
_waiting: set[int] = set()
"""The threads in which the script waits for SIGTERM by one of these."""
_script_signaled = threading.Event()
"""Set from the script's stop until one of its threads has it: it gets one signal once, as from the system."""


def watch_signals(on_stop: Callable[[], None], numbers: frozenset[signal.Signals] = SIGTERM_ALONE) -> None:
    """Call ``on_stop()``, in a thread, at each of these signals that this very process gets.

    The byte that Python's C handler writes to the wake-up descriptor arrives even while the main thread is inside a
    long call into native code. A script may take the descriptor away; so a driver's stops do not come by signals
    (:mod:`tidegate_spark.driver.first_process`).
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    # Before there are handlers: a signal between the two would end nothing, and be reported to nobody.
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _note_nothing)

    os.register_at_fork(after_in_child=lambda: _forget(numbers))

    def read() -> None:
        _ = writer  # the descriptor is only borrowed by set_wakeup_fd and must stay open
        while received := reader.recv(64):
            if not numbers.isdisjoint(received):
                on_stop()

    threading.Thread(target=read, name="signals", daemon=True).start()


def note_waits() -> None:
    """Have it known which threads of the script wait for SIGTERM."""
    for name in _WAITS:
        setattr(signal, name, _noted(getattr(signal, name)))


def signal_script() -> bool:
    """Let the script have SIGTERM, if it has a handler of its own or waits for it; return whether it does.

    A handler in Python, of ``signal.signal`` or of asyncio. One that a library set in C may end the process at once,
    and is not called.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if callable(handler) and handler is not _note_nothing:
        os.kill(os.getpid(), signal.SIGTERM)
        return True
    _script_signaled.set()
    waiting = list(_waiting)
    for thread in waiting:
        signal.pthread_kill(thread, signal.SIGTERM)
    if waiting:
        _script_signaled.clear()
    return bool(waiting)


def forget_script_handlers() -> None:
    """Have no handler of the script's called any more; to be called in the main thread."""
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler) and handler is not _note_nothing and handler is not signal.default_int_handler:
            signal.signal(number, _note_nothing)


def _noted(wait_for: Callable[..., Any]) -> Callable[..., Any]:
    def wait(sigset: Iterable[int], *timeout: float) -> Any:  # by this name, as Python's own sigwait takes it
        awaited = set(sigset)
        if signal.SIGTERM not in awaited:
            return wait_for(awaited, *timeout)
        thread = threading.get_ident()
        _waiting.add(thread)
        try:
            if _script_signaled.is_set():  # while the script did something else
                _script_signaled.clear()
                signal.pthread_kill(thread, signal.SIGTERM)
            return wait_for(awaited, *timeout)
        finally:
            _waiting.discard(thread)

    return InPlaceOf("signal", wait_for, wait)


def _forget(numbers: frozenset[signal.Signals]) -> None:
    """Let a child process be as any other: it ends at such a signal, and does not report it to this one."""
    signal.set_wakeup_fd(-1)
    for number in numbers:
        if signal.getsignal(number) is _note_nothing:
            signal.signal(number, signal.SIG_DFL)


def _note_nothing(number: int, frame: object) -> None:
    """Be a handler, so that the signal ends nothing: the wake-up descriptor reports it."""
