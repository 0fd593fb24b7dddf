"""SIGTERM, whatever the script's thread is doing. Changes the process's signal handlers."""

from __future__ import annotations

import signal
import socket
import threading


def watch_signals(on_terminate: object) -> None:
    """Call ``on_terminate()``, in a thread, at each SIGTERM.

    The byte that Python's C handler writes to the wake-up descriptor arrives even while the script's thread is inside a
    long call into native code, or has a SIGTERM handler of its own. As process 1 of a container we would otherwise not
    get SIGTERM at all.
    """
    assert callable(on_terminate)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def read() -> None:
        _ = writer  # the descriptor is only borrowed by set_wakeup_fd and must stay open
        while received := reader.recv(64):
            if signal.SIGTERM in received:
                on_terminate()

    threading.Thread(target=read, name="signals", daemon=True).start()
