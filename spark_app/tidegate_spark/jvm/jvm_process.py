"""The process of Spark's JVM, which is no child of the script's. Starts processes.

A script that supervises children waits for any child, or ignores SIGCHLD. It would wait for the JVM, too, or collect
it before us: ``subprocess`` takes 0 for the exit code then, a killed JVM would have completed the application, and
Spark's launcher, which goes on for as long as the code is 0, would wait for a JVM that did not start. So the JVM has
a parent of its own (:mod:`tidegate_spark.jvm.jvm_parent`). Standard library only.
"""

from __future__ import annotations

import _socket  # not ``socket``, as in jvm_parent
import array
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tidegate_spark.jvm import jvm_parent
from tidegate_spark.jvm.descriptors import Identity, identity
from tidegate_spark.jvm.jvm_parent import LENGTH, REPORT

EXIT_NOT_KNOWN = 256
"""In the place of an exit code: it has ended, and its parent had gone before. No process ends with this."""
POLL_SECONDS = 0.02
_START_SECONDS = 60.0
"""For its parent to start a program and say so; it takes milliseconds."""
_PYTHON = sys.executable


class JvmParents:
    """The way to the process that starts JVMs; one is started where there is none, or it has gone."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._lock = threading.Lock()
        self._requests: _socket.socket | None = None
        self._which: Identity | None = None

    def use(self, requests: _socket.socket) -> None:
        """Take the one that was forked before there was a script."""
        self._requests, self._which = requests, identity(requests.fileno())

    def ask(self, descriptors: Sequence[int]) -> None:
        """Hand a request's socket and three streams over.

        Raises:
            OSError: there is no such process, and none can be started.
        """
        with self._lock:
            # The script may have closed all that was open, and others may have its number.
            if self._requests is not None and identity(self._requests.fileno()) == self._which:
                try:
                    return _send(self._requests, descriptors)
                except OSError:
                    self._requests.close()  # somebody has killed it
            elif self._requests is not None:
                self._requests.detach()
            self.use(_started_parent())
            assert self._requests is not None
            return _send(self._requests, descriptors)


PARENTS = JvmParents()
"""Of this process."""


class _StarterGoneError(OSError):
    """Whoever was to start a program has gone before it said how that went."""


class JvmProcess:
    """A process whose parent reports its exit code: that, or :data:`EXIT_NOT_KNOWN`. As far as it goes, a ``Popen``."""

    def __init__(  # noqa: PLR0913 - as of Popen, by name
        self,
        args: Sequence[str],
        *,
        executable: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        **_settled: Any,
    ) -> None:
        """Start it as ``Popen`` does, in a session of its own, in which interrupts are ignored.

        Args:
            args: the command, with the program's name first.
            executable: the program; None: the command's first word.
            env: variables; None: those of this process.
            cwd: its folder; None: that of this process.
            stdin: ``subprocess.PIPE``, or None for this process's.
            stdout: a descriptor, or None for this process's.
            _settled: what else PySpark asks for, and each JVM has.

        Raises:
            OSError: it cannot be started.
            ValueError: a word or variable has a null byte in it.
        """
        # A signal handler runs in the main thread, in the middle of its own question, and may ask for the end as well.
        self._asking = threading.RLock()
        self.args = args
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        program = executable or args[0]
        request = jvm_parent.request_of(cwd or os.getcwd(), program, args, os.environ if env is None else env)
        try:
            self.pid = self._started(program, request, stdin, stdout)
        except _StarterGoneError:
            # Somebody has killed it, and it had our request already: the next one is another's.
            self.pid = self._started(program, request, stdin, stdout)

    def _started(self, program: str, request: bytes, stdin: int | None, stdout: int | None) -> int:
        """Have it started, once; return its process id."""
        self._report, theirs = jvm_parent.pair(_socket.SOCK_STREAM)
        self._which = identity(self._report.fileno())
        try:
            with contextlib.ExitStack() as handed:
                handed.callback(theirs.close)
                streams = [self._input(stdin), *(_copy(number) for number in (1 if stdout is None else stdout, 2))]
                for stream in streams:
                    handed.callback(os.close, stream)
                PARENTS.ask([theirs.fileno(), *streams])
            return self._await_start(program, request)
        except BaseException:
            self._release()
            if self.stdin is not None:
                self.stdin.close()  # what may have been started after all goes with it
            raise

    def _input(self, stdin: int | None) -> int:
        if stdin != subprocess.PIPE:
            return _copy(0)
        reader, writer = os.pipe()
        self.stdin = os.fdopen(jvm_parent.moved_up(writer), "wb")
        os.close(writer)
        return reader

    def _await_start(self, program: str, request: bytes) -> int:
        self._report.settimeout(_START_SECONDS)
        try:
            self._report.sendall(LENGTH.pack(len(request)) + request)
            report = self._report.recv(REPORT.size)
        except (BrokenPipeError, ConnectionResetError):
            report = b""  # as where it goes after it has read the request
        self._report.settimeout(None)
        if len(report) != REPORT.size:
            raise _StarterGoneError(f"the process that was to start {program} has gone")
        error, process, _ = REPORT.unpack(report)
        if error:
            raise OSError(error, os.strerror(error), program)
        return int(process)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        # One at a time: who is in between another one's question and its answer would find the report closed.
        with self._asking:
            answer = self._end() if self.returncode is None else None
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

    def kill(self) -> None:
        """Send SIGKILL unless it has ended: its number is its own until its end was read."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _end(self) -> int | None:
        """Return how it ended, by its parent's report, which stays where it is: a signal handler may ask as well."""
        code = self._reported()
        if code is not None or Path(f"/proc/{self.pid}").exists():
            return code
        code = self._reported()  # it may have come in between
        return EXIT_NOT_KNOWN if code is None else code

    def _reported(self) -> int | None:
        """Return what the report says; None if there is none, or the script has closed it."""
        if identity(self._report.fileno()) != self._which:
            return None
        try:
            report = self._report.recv(REPORT.size, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
        except OSError:
            return None
        if len(report) != REPORT.size:
            return None
        _, process, code = REPORT.unpack(report)
        return int(code) if process == self.pid else None

    def _release(self) -> None:
        """Have the parent go, also where children of the script have a copy of the socket."""
        if identity(self._report.fileno()) != self._which:
            self._report.detach()
            return
        with contextlib.suppress(OSError):
            self._report.shutdown(_socket.SHUT_RDWR)
        self._report.close()


def _copy(descriptor: int) -> int:
    """Return a copy of a stream, or of nothing if the script has closed it."""
    try:
        return os.dup(descriptor)
    except OSError:
        return os.open(os.devnull, os.O_RDWR)


def _send(requests: _socket.socket, descriptors: Sequence[int]) -> None:
    handed = array.array("i", descriptors)
    requests.sendmsg([b"r"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed.tobytes())])


def _started_parent() -> _socket.socket:
    """Start one as a program; what this process starts ends at once, and has started it.

    Raises:
        OSError: it cannot be started.
    """
    ours, theirs = jvm_parent.pair(_socket.SOCK_SEQPACKET)
    try:
        command = [_PYTHON, "-S", "-s", str(Path(jvm_parent.__file__)), str(theirs.fileno())]
        code = subprocess.Popen(command, pass_fds=(theirs.fileno(),)).wait()  # noqa: S603 - this very program
        if code != 0:
            raise OSError(f"{_PYTHON} did not start the parent of Spark's JVM: exit code {code}")
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours
