"""The process of Spark's JVM, which is no child of the script's. Starts processes.

A script that supervises children waits for any child, or ignores SIGCHLD. It would wait for the JVM, too, or collect
it before us: ``subprocess`` takes 0 for the exit code then, a killed JVM would have completed the application, and
Spark's launcher, which goes on for as long as the code is 0, would wait for a JVM that did not start. So the JVM has
a parent of its own (:mod:`tidegate_spark.jvm.jvm_parent`). Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tidegate_spark.jvm.jvm_parent import REPORT

EXIT_NOT_KNOWN = 256
"""In the place of an exit code: it has ended, and its parent had gone before. No process ends with this."""
POLL_SECONDS = 0.02
_PARENT = Path(__file__).with_name("jvm_parent.py")


class JvmProcess(subprocess.Popen[bytes]):
    """A process whose parent reports its exit code: that, or :data:`EXIT_NOT_KNOWN`."""

    def __init__(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        executable: str | None = None,
        env: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        """Start it as ``Popen`` does.

        Args:
            args: the command, with the program's name first.
            executable: the program; None: the command's first word.
            env: variables; None: of this process.
            how: as for ``Popen``, but for ``shell`` and ``pass_fds``.

        Raises:
            OSError: it cannot be started.
        """
        # A signal handler runs in the main thread, in the middle of its own question, and may ask for the end as well.
        self._asking = threading.RLock()
        self._reports, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [os.fspath(word) for word in args]
        try:
            with theirs:
                descriptor = theirs.fileno()
                parent = [sys.executable, *_flags(os.environ if env is None else env), str(_PARENT), str(descriptor)]
                super().__init__([*parent, executable or command[0], *command], env=env, pass_fds=(descriptor,), **how)
            # What this process has started ends at once; what that has started is the JVM's parent.
            self.pid = self._read_start(executable or command[0], super().wait())
        except OSError:
            self._release()
            pipe = vars(self).get("stdin")
            if pipe is not None:
                pipe.close()
            raise
        self.args, self.returncode = args, None

    def _read_start(self, program: str, code: int) -> int:
        report = self._reports.recv(REPORT.size)
        if not report:
            raise OSError(f"{sys.executable} did not start {program}: exit code {code}")
        error, process = REPORT.unpack(report)
        if error:
            raise OSError(error, os.strerror(error), program)
        return int(process)

    def _release(self) -> None:
        """Have the parent go, also where children of the script have a copy of the socket."""
        with contextlib.suppress(OSError):
            self._reports.shutdown(socket.SHUT_RDWR)
        self._reports.close()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        # One at a time: who is in between another one's question and its answer would find the report closed.
        with self._asking:
            answer = _end_of(self.pid, self._reports) if self.returncode is None else None
            if self.returncode is None:  # or a signal handler has asked in between
                self.returncode = answer
                if answer is not None:
                    self._release()
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


def _flags(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return what keeps the parent's Python from what it does not need; pure.

    It finds nothing where somebody moved its library and says so in a variable, unless it may read that.
    """
    return ("-S", "-s") if "PYTHONHOME" in variables else ("-S", "-I")


def _end_of(process: int, reports: socket.socket) -> int | None:
    """Return how a process ended, by its parent's report, which stays where it is: a signal handler may ask as well."""
    try:
        report = reports.recv(REPORT.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        report = b""  # the script has closed all that is open
    if report:
        return int(REPORT.unpack(report)[1])
    return None if Path(f"/proc/{process}").exists() else EXIT_NOT_KNOWN
