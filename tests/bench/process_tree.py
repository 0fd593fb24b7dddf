"""CPU time and memory of a process and all it started, and a halt for them. Reads /proc (proc(5))."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """CPU seconds since each process began, ended children included; resident memory in MiB, now."""

    cpu_seconds: float
    rss_mib: float


def usage_of_tree(root: int) -> Usage:
    """Return what the process ``root`` and its descendants use; processes that end meanwhile are left out."""
    cpu, rss = 0.0, 0.0
    for pid in _tree(root):
        try:
            fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            resident_pages = int((PROC / str(pid) / "statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        # Fields 14 to 17 of stat: user and system time, then those of children that were waited for.
        cpu += sum(int(f) for f in fields[11:15]) / TICKS_PER_SECOND
        rss += resident_pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return Usage(cpu, rss)


def thread_seconds(root: int, beginnings: Sequence[str]) -> float:
    """Return the CPU seconds of those threads of ``root`` and its descendants that live, whose names begin like this.

    Threads that end meanwhile are left out. Of a name, Linux keeps 15 characters.
    """
    nanoseconds = 0
    for pid in _tree(root):
        for thread in (PROC / str(pid) / "task").glob("*"):
            try:
                if (thread / "comm").read_text().startswith(tuple(beginnings)):
                    nanoseconds += int((thread / "schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return nanoseconds / 1e9


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    tree, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        tree.append(pid)
        waiting.extend(children.get(pid, []))
    return tree


class PeakMemory:
    """Watches a process tree's resident memory from a thread until stopped."""

    def __init__(self, root: int, interval: float = 0.5) -> None:
        """Start watching ``root`` every ``interval`` seconds."""
        self.mib = 0.0
        self._root, self._interval = root, interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(self._interval):
            self.mib = max(self.mib, usage_of_tree(self._root).rss_mib)

    def stop(self) -> float:
        """End the watching; return the peak in MiB."""
        self._ended.set()
        self._thread.join()
        return self.mib


@contextlib.contextmanager
def stopped(root: int) -> Iterator[None]:
    """Keep the process ``root`` and its descendants from running (SIGSTOP), and let them go on in the end."""
    tree = _tree(root)
    try:
        for pid in tree:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in tree:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
