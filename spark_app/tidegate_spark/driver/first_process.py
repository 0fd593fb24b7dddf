"""The container's first process, which runs no code of the application. Starts a process.

A script or library may take SIGTERM for itself. So the kubelet signals this process, which passes a stop to the driver
over a pipe and reaps orphans. The parent of Spark's JVMs is a child of it, too. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tidegate_spark.jvm.descriptors import identity
from tidegate_spark.jvm.jvm_parent import fork_parent
from tidegate_spark.jvm.jvm_process import PARENTS
from tidegate_spark.process.held_signals import FIRST, STOPS

STOP = b"s"
KILLED = 128
"""A process that a signal ended has this plus its number as exit code, as in a shell."""
_STOPS_ELSEWHERE = frozenset({signal.SIGTERM})
"""Where it is no first process: in a terminal, the driver gets an interrupt by itself."""
_FOR_SCRIPT = frozenset({signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})
"""What programs take to read a file again, or to write a dump. A terminal sends the first one to both processes."""


class StopLine:
    """The driver's end of the pipe from the first process."""

    def __init__(self, descriptor: int) -> None:
        """Begin to read ``descriptor``, in a thread."""
        self._descriptor, self._which = descriptor, identity(descriptor)
        self._lock = threading.Lock()
        self._asked = False
        self._on_stop: Callable[[], None] | None = None
        threading.Thread(target=self._read, name="stop-line", daemon=True).start()

    def listen(self, on_stop: Callable[[], None]) -> None:
        """Call ``on_stop``, in another thread, whenever a stop is asked for; now if one was before."""
        with self._lock:
            self._on_stop, asked = on_stop, self._asked
        if asked:
            on_stop()

    def _read(self) -> None:
        # A script may close all that is open: others have the number then, and a stop comes by the agent alone.
        while identity(self._descriptor) == self._which:
            if not os.read(self._descriptor, 64):
                # The first process has gone. In a container everything has; elsewhere nobody is left to stop us.
                os.kill(os.getpid(), signal.SIGKILL)
            with self._lock:
                self._asked, on_stop = True, self._on_stop
            if on_stop is not None:
                on_stop()


def go_on_in_child() -> StopLine:
    """Return in a child; this process stays the first one, and ends with the child's exit code.

    To be called while there is one thread: the child has only a copy of the one that calls.
    """
    is_first = os.getpid() == FIRST
    stops = STOPS if is_first else _STOPS_ELSEWHERE
    for_script = _FOR_SCRIPT if is_first else _FOR_SCRIPT - {signal.SIGHUP}
    # Whoever started us may have it ignored; then nothing would report the child's end.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Blocked before the child is there: a signal that comes meanwhile waits, and is not lost.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*STOPS, *for_script, signal.SIGCHLD})
    # A first process has held them since its first line; before that, nothing was blocked.
    mask = before - STOPS if is_first else before
    jvms = fork_parent(mask)
    reader, writer = os.pipe()
    child = os.fork()
    if child != 0:
        os.close(reader)
        jvms.close()
        _pass_on(child, writer, stops, for_script)
    os.close(writer)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    PARENTS.use(jvms)
    return StopLine(reader)


def _pass_on(
    child: int, writer: int, stops: frozenset[signal.Signals], for_script: frozenset[signal.Signals]
) -> NoReturn:
    os.set_blocking(writer, False)
    while True:
        received = signal.Signals(signal.sigwait({*STOPS, *for_script, signal.SIGCHLD}))
        if received in stops:
            _forward_stop(child, writer)
        elif received in for_script and _is_caught(child, received):
            # Not collected yet, if it has ended: the number is no other process's.
            os.kill(child, received)
        code = _code_of(child)
        if code is not None:
            os._exit(code)


def _forward_stop(child: int, writer: int) -> None:
    try:
        os.write(writer, STOP)
    except BrokenPipeError:
        # The script has another program in its place (exec), which stops as any other. If it has ended, that is next.
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    except BlockingIOError:
        pass  # it was signalled already, and does not read


def _is_caught(child: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal, in Python or not; without one, it would end by it."""
    try:
        lines = Path(f"/proc/{child}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(caught >> (number - 1) & 1)


def _code_of(child: int) -> int | None:
    """Collect all processes that have ended; return the child's exit code, None while it runs."""
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return KILLED + signal.SIGKILL  # somebody else has collected it: its code is not known
        if ended == 0:
            return None
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED - code
