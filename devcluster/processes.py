"""Processes by identity: a recorded process id alone may since belong to somebody else. Reads /proc, sends signals."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class ProcessIdentity:
    """One process for ever: no other process of any boot has the same triple."""

    pid: int
    start: int
    """Clock ticks since boot, from /proc/PID/stat."""
    boot: str

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity":
        """Return the identity of a running process; raise ProcessLookupError if there is none."""
        start = _start_of(pid)
        if start is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid, start, _BOOT_ID.read_text().strip())

    def alive(self) -> bool:
        """Say whether this very process still runs (a zombie does not)."""
        return _BOOT_ID.read_text().strip() == self.boot and _start_of(self.pid) == self.start

    def kill(self, timeout: float = 60) -> None:
        """End the process at once and wait until it is gone.

        Raises:
            TimeoutError: it is still there after ``timeout`` seconds.
        """
        end = time.monotonic() + timeout
        while self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            if time.monotonic() > end:
                raise TimeoutError(f"process {self.pid} did not end within {timeout:.0f} s of SIGKILL")
            time.sleep(0.01)


def _start_of(pid: int) -> int | None:
    """Return the start time of a process that runs, None if there is none or only its zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name, in parentheses, may hold spaces and parentheses of its own.
    state, *rest = stat.rpartition(") ")[2].split()
    return None if state in "ZX" else int(rest[18])


def descendants(pid: int) -> list[int]:
    """Return the process ids of all children, grandchildren … of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found
