"""The parent of Spark's JVM, in the place of the script's process. A program of its own; starts a process.

``os.wait()`` and ``os.waitpid(-1, ...)`` in a script are about the script's own children, as under ``spark-submit``:
a JVM among them would be collected by somebody who does not know it, or be waited for until the application ends.
This process starts the JVM, reports its process id and how it ended, and goes. Standard library only.

Arguments: the descriptor of the socket for the two reports, the program, the command with its name first.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

REPORT = struct.Struct("<ii")
"""Two of these: how the start went (errno or 0, process id), then how it ended (0, exit code; negative: a signal)."""
_OWN_VARIABLES = Path("/proc/self/environ")
_AS_AT_START = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ"))
"""What Python ignores at its start, and every program that it starts would ignore, too."""


def given_variables(content: bytes) -> Mapping[bytes, bytes]:
    """Return the variables that a process was given, as ``/proc/PID/environ`` has them; pure."""
    pairs = (each.partition(b"=") for each in content.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def main(descriptor: int, program: str, command: list[str]) -> NoReturn:
    """Start the program, report twice and end."""
    # The script may ignore it, and so would this process: nothing would say then how the JVM ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if os.fork() != 0:
        # With its parent gone, this process belongs to the first one of the container.
        os._exit(0)
    # The JVM must not have it: who waits for a report would not learn that this process has gone.
    os.set_inheritable(descriptor, False)
    report = socket.socket(fileno=descriptor)
    try:
        # As they were given: where the locale is C, Python sets LC_CTYPE, by which a JVM reads files.
        variables = given_variables(_OWN_VARIABLES.read_bytes())
        jvm = os.posix_spawnp(program, command, variables, setsigdef=_AS_AT_START)
    except OSError as error:
        report.send(REPORT.pack(error.errno or 1, 0))
        os._exit(1)
    _drop_streams()
    report.send(REPORT.pack(0, jvm))
    # Not collected before somebody has read how it ended, or has gone: until then, its number is no other process's.
    ended = os.waitid(os.P_PID, jvm, os.WEXITED | os.WNOWAIT)
    assert ended is not None  # it blocks
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    report.send(REPORT.pack(0, code))
    report.recv(1)
    os._exit(0)


def _drop_streams() -> None:
    """Close what the JVM alone is to hold: it ends with its input, and who reads its output waits for the last one."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
