"""The process of Spark's JVM, whose end is known also where the script collects ended children. Starts a process.

A script that supervises children ignores SIGCHLD, or waits for any child, and so has collected the JVM before us.
``subprocess`` takes 0 for the exit code then: a killed JVM would have completed the application, and Spark's launcher,
which goes on for as long as the code is 0, would wait for a JVM that did not start. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from typing import Any

EXIT_NOT_KNOWN = 256
"""In the place of an exit code: it has ended, and somebody else has collected how. No process ends with this."""
POLL_SECONDS = 0.02


class JvmProcess(subprocess.Popen[bytes]):
    """A child process whose exit code is its own or :data:`EXIT_NOT_KNOWN`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Start it as ``Popen`` does."""
        # A signal handler runs in the main thread, in the middle of its own question, and may ask for the end as well.
        self._asking = threading.RLock()
        super().__init__(*args, **kwargs)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        # One at a time: who is in between another one's question and its answer would find the process collected.
        with self._asking:
            answer = _exit_code_of(self.pid) if self.returncode is None else None
            if self.returncode is None:  # or a signal handler has asked in between, and collected it
                self.returncode = answer
            code: int | None = self.returncode
            return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it runs on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            time.sleep(POLL_SECONDS)
        return code


def _exit_code_of(child: int) -> int | None:
    """Return how a child ended, and collect it; it is asked first, because it may be collected in between."""
    try:
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return EXIT_NOT_KNOWN
    if ended is None:
        return None
    with contextlib.suppress(ChildProcessError):  # collected in between
        os.waitpid(child, os.WNOHANG)
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
