"""Finds queries that a child process of the script runs in a Spark of its own. Reads /proc; never talks to a JVM.

Such queries are not Tidegate's, and nothing else would report them: the script's own process waits for its child, and
looks like one that works before it asks for Spark. A child's Spark without a query is a batch job, and is left alone.

Design: docs/design/restarts-and-stops.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext

from tidegate_spark.contract.protocol import Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.jvm import entry_messages as messages
from tidegate_spark.monitoring.held_fault import HeldFault
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.queries import Queries

INTERVAL_SECONDS = 3.0
PATIENCE_SECONDS = 30.0
"""A child may run a query first, to generate or load what the script's own queries read: these get time to start."""
THREAD_OF_A_QUERY = "stream execution thread for"[:15]
"""What Spark calls the thread of each query, as far as the system keeps names of threads."""
PROC = Path("/proc")


def below(parents: Mapping[int, int], root: int) -> list[int]:
    """Return the children of a process, their children and so on, in order; pure.

    Args:
        parents: of each process.
        root: the process.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for process, parent in parents.items():
        children[parent].append(process)
    found = [root]
    for process in found:  # grows meanwhile
        found += children[process]
    return sorted(found[1:])


@dataclass(frozen=True)
class Processes:
    """The processes of the container; those that end meanwhile have nothing."""

    proc: Path = PROC

    def parents(self) -> dict[int, int]:
        """Return the parent of each."""
        # After the name, which is in parentheses and may be anything, come the state and the parent.
        stats = {int(name): self._read(f"{name}/stat").rpartition(")")[2] for name in self._list() if name.isdigit()}
        return {process: int(stat.split()[1]) for process, stat in stats.items() if stat}

    def runs_queries(self, process: int) -> bool:
        """Return whether a process is a JVM whose Spark runs a query."""
        tasks = f"{process}/task"
        return any(self._read(f"{tasks}/{task}/comm").strip() == THREAD_OF_A_QUERY for task in self._list(tasks))

    def _list(self, folder: str = "") -> list[str]:
        try:
            return os.listdir(self.proc / folder)
        except OSError:
            return []

    def _read(self, file: str) -> str:
        try:
            return (self.proc / file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def own_jvm() -> int | None:
    """Return the process id of this process's own JVM, None if it has started none."""
    jvm = getattr(SparkContext._gateway, "proc", None)
    return jvm.pid if jvm is not None else None


class ChildSpark:
    """Reports queries in child processes while the script's own process has started none."""

    def __init__(self, queries: Queries, progress: Progress, root: int, processes: Processes | None = None) -> None:
        """Prepare.

        Args:
            queries: of the script's own process.
            progress: gets the report.
            root: the container's first process, by whose processes a child is still found whose parent has ended.
            processes: where they are found.
        """
        self._queries, self._progress, self._root = queries, progress, root
        self._processes = processes or Processes()
        self._since: float | None = None
        self._held = HeldFault(progress)

    def start(self, ends: threading.Event) -> None:
        """Begin to check, until ``ends`` is set or the script's own process has started a query."""
        threading.Thread(target=self._run, args=(ends,), name="child-spark", daemon=True).start()

    def _run(self, ends: threading.Event) -> None:
        while self.check(time.monotonic()) and not ends.wait(INTERVAL_SECONDS):
            pass

    def check(self, now: float) -> bool:
        """Check once; return whether to check again."""
        if self._queries.entries():
            self._held.report(None)
            return False
        child = None if self._queries.starting else self._find()
        if child is None:
            self._since = None
            self._held.report(None)
            return True
        self._since = now if self._since is None else self._since
        if now - self._since >= PATIENCE_SECONDS:
            self._held.report(Fault(Reason.SCRIPT_UNSUPPORTED, messages.queries_in_child(child)))
        return True

    def _find(self) -> int | None:
        candidates = below(self._processes.parents(), self._root)
        own = own_jvm()
        return next((each for each in candidates if each != own and self._processes.runs_queries(each)), None)
