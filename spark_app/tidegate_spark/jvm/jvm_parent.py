"""The parent of Spark's JVMs, in the place of the script's process. Starts processes.

``os.wait()`` and ``os.waitpid(-1, ...)`` in a script are about the script's own children, as under ``spark-submit``:
a JVM among them would be collected by somebody who does not know it, or be waited for until the application ends.

The container's first process forks this one before there is a script; elsewhere it is started as a program, with the
descriptor of the socket of requests. For each request it forks a process of that JVM's own, which starts it, reports
its process id and how it ended, and goes. Standard library only, and little of that.
"""

from __future__ import annotations

import _socket  # not ``socket``: programs replace what is in there, and set a limit of time for all of its sockets
import array
import contextlib
import fcntl
import os
import signal
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

REPORT = struct.Struct("<iii")
"""Two of these: how the start went (errno or 0, process id, 0), then how it ended (0, process id, exit code; negative:
a signal)."""
LENGTH = struct.Struct("<q")
"""Of the request, which follows."""
NAME = "jvm-parent"
"""Of the process, for whoever lists those of a container: its command is the first process's."""
STREAMS = 3
_FIRST_DESCRIPTOR = 64
"""Beyond those that programs close and open by their numbers."""
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def request_of(folder: str, program: str, command: Sequence[str], variables: Mapping[str, str]) -> bytes:
    """Return a request to start a program in a folder; pure.

    Raises:
        ValueError: something has a null byte in it.
    """
    pairs = (f"{name}={value}" for name, value in variables.items())
    parts = [os.fsencode(part) for part in (folder, program, str(len(command)), *command, *pairs)]
    if any(b"\0" in part for part in parts):
        raise ValueError("embedded null byte")
    return b"\0".join(parts)


def pair(kind: int) -> tuple[_socket.socket, _socket.socket]:
    """Return two ends of a socket whose calls take their time, whatever limit the program sets for its own."""
    ends = _socket.socketpair(_socket.AF_UNIX, kind)
    high = tuple(_socket.socket(fileno=moved_up(end.fileno())) for end in ends)
    for end in (*ends, *high):
        end.settimeout(None)
    for end in ends:
        end.close()
    return high[0], high[1]


def moved_up(descriptor: int) -> int:
    """Return a copy of a descriptor with a number that no program closes, or takes for a stream, by accident."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)


def fork_parent(mask: Iterable[int]) -> _socket.socket:
    """Fork the process that :func:`serve` is; return the socket of requests to it.

    To be called while there is one thread: the child has only a copy of the one that calls.

    Args:
        mask: the signals that a JVM is to have blocked.
    """
    ours, theirs = pair(_socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        serve(theirs, mask)
    theirs.close()
    return ours


def serve(requests: _socket.socket, mask: Iterable[int]) -> NoReturn:
    """Have each JVM started that is asked for, until nobody is left who could ask."""
    # A signal to all processes that there are, or to the group, must not end this one: it ends when the others have.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as name:
        name.write(NAME)
    # The system collects those that report.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while descriptors := _receive(requests):
        try:
            if os.fork() == 0:
                requests.close()
                _be_parent(descriptors[0], descriptors[1:], mask)
        except OSError:
            pass  # no process can be had: who asked finds the socket closed
        for descriptor in descriptors:
            os.close(descriptor)
    os._exit(0)


def _receive(requests: _socket.socket) -> list[int]:
    try:
        size = _socket.CMSG_SPACE((STREAMS + 1) * array.array("i").itemsize)
        _, ancillary, _, _ = requests.recvmsg(1, size, _socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return []
    received = array.array("i")
    for _level, _kind, content in ancillary:
        received.frombytes(content)
    moved = [moved_up(descriptor) for descriptor in received]
    for descriptor in received:
        os.close(descriptor)
    return moved


def _be_parent(descriptor: int, streams: Sequence[int], mask: Iterable[int]) -> NoReturn:
    """Start the JVM, report twice and end."""
    report = _socket.socket(fileno=descriptor)
    report.settimeout(None)
    try:
        jvm = _start(_read(report, LENGTH.unpack(_read(report, LENGTH.size))[0]), streams, mask)
    except (OSError, ValueError) as error:
        report.send(REPORT.pack(getattr(error, "errno", 0) or 1, 0, 0))
        os._exit(1)
    for stream in (*streams, *range(STREAMS)):
        # The JVM alone is to hold them: who reads its output waits for the last one.
        os.close(stream)
    try:
        report.send(REPORT.pack(0, jvm, 0))
        # Not collected before somebody has read how it ended, or has gone: until then, its number is no other one's.
        ended = os.waitid(os.P_PID, jvm, os.WEXITED | os.WNOWAIT)
        assert ended is not None  # it blocks
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        report.send(REPORT.pack(0, jvm, code))
        report.recv(1)
    except OSError:
        pass  # whoever asked has gone, and the JVM goes with its input
    os._exit(0)


def _start(request: bytes, streams: Sequence[int], mask: Iterable[int]) -> int:
    """Start what a request asks for; return its process id."""
    folder, program, count, *parts = request.split(b"\0")
    command, assignments = parts[: int(count)], parts[int(count) :]
    # Otherwise a JVM's end could not be asked for, and its own children neither.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # As PySpark has it: an interrupt is the script's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A signal to the group of the script must not reach the JVM before the queries are stopped.
    os.setsid()
    os.chdir(folder)
    os.environb.clear()
    for each in assignments:
        name, _, value = each.partition(b"=")
        if name:
            os.environb[name] = value
    return os.posix_spawnp(
        os.fsdecode(program),
        command,
        os.environb,
        file_actions=[(os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams)],
        setsigmask=mask,
        setsigdef=_IGNORED_BY_PYTHON,
    )


def _read(report: _socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = report.recv(size - len(content))
        if not part:
            os._exit(1)  # whoever asked has gone
        content += part
    return bytes(content)


def main(descriptor: int) -> NoReturn:
    """Be the process that :func:`serve` is, with another parent than the one that started this."""
    if os.fork() != 0:
        os._exit(0)
    requests = _socket.socket(fileno=descriptor)
    requests.settimeout(None)
    serve(requests, signal.pthread_sigmask(signal.SIG_BLOCK, ()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
