"""A query's batches as its checkpoint tells them, read where the S3 server keeps its objects. Reads files.

The development cluster's S3 server keeps each object in a file of the same path. The file's time is when the object was
written, by this machine's clock and to the microsecond, and it can be looked at while the server is down.
"""

import contextlib
import itertools
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidegate_testing.waiting import wait_for


@dataclass(frozen=True)
class Batch:
    """A batch's number and when the file that tells of it was written, in seconds since the epoch."""

    number: int
    time: float


def longest_gap(commits: Sequence[Batch], start: float, end: float) -> float:
    """Return the longest time without a commit that overlaps ``start`` to ``end``; 0 if nothing was ever committed.

    Pure. A gap starts with the commit before it, so that one that was under way already at ``start`` counts whole.
    """
    times = sorted(commit.time for commit in commits)
    before = [time for time in times if time <= start][-1:]
    within = [time for time in times if start < time <= end]
    after = [time for time in times if time > end][:1]
    marks = [*before, *within, *(after if not within else ())]
    return max((later - earlier for earlier, later in itertools.pairwise(marks)), default=0.0)


@dataclass(frozen=True)
class CommitLog:
    """One query's checkpoint, as a folder."""

    checkpoint: Path
    begins: int = -1
    """The last batch that no driver ran here: it and those before it are what the lineage was filled with."""

    def logs(self) -> "tuple[CommitLog, ...]":
        """Return it alone."""
        return (self,)

    def planned(self) -> dict[int, float]:
        """Return the batches that were begun, with the time of each."""
        return _numbered(self.checkpoint / "offsets", self.begins)

    def committed(self) -> dict[int, float]:
        """Return the batches that were committed, with the time of each."""
        return _numbered(self.checkpoint / "commits", self.begins)

    def running(self) -> Batch | None:
        """Return the batch that is begun and not committed, None if there is none."""
        # Commits first: a batch that ends between the two looks must not seem to run.
        committed = self.committed()
        planned = self.planned()
        newest = max(planned, default=-1)
        return Batch(newest, planned[newest]) if newest > max(committed, default=-1) else None

    def last_written(self) -> float:
        """Return when the newest batch was begun or committed, 0 if there is none."""
        return max(_newest_time(self.checkpoint / name, self.begins) for name in ("offsets", "commits"))

    def ends(self, batch: int) -> list[Mapping[str, Any]]:
        """Return what each source of a batch was read up to, as the source itself writes it."""
        lines = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()
        # The first two lines are the format's version and the query's settings.
        return [json.loads(line) for line in lines[2:]]

    def await_commit_after(self, time: float, timeout: float) -> Batch:
        """Wait for a commit later than ``time`` and return the first one; raise AssertionError after ``timeout`` s."""

        def found() -> Batch:
            later = [Batch(number, at) for number, at in self.committed().items() if at > time]
            assert later, "no later one"
            return min(later, key=lambda batch: batch.time)

        return wait_for(f"a commit in {self.checkpoint}", found, timeout, 0.02)


def _numbered(folder: Path, begins: int) -> dict[int, float]:
    found: dict[int, float] = {}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.isdigit() and int(entry.name) > begins:
                with contextlib.suppress(FileNotFoundError):  # Spark removes old ones meanwhile
                    found[int(entry.name)] = entry.stat().st_mtime
    return found


def _newest_time(folder: Path, begins: int) -> float:
    """Return what the last of ``_numbered`` is, without asking for each file's time."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        newest = max((int(name) for name in os.listdir(folder) if name.isdigit()), default=-1)
        if newest > begins:
            return (folder / str(newest)).stat().st_mtime
    return 0.0


@dataclass(frozen=True)
class LineageLogs:
    """One query's checkpoints in all lineages of an application; as a log, that of the one it was last at work in."""

    lineages: Path
    query: str
    _begins: dict[int, int] = field(default_factory=lambda: {1: -1}, compare=False)
    """By lineage; once it was filled that stays as it is."""

    def logs(self) -> tuple[CommitLog, ...]:
        """Return the log of each lineage that is whole, the first one first."""
        numbers = [int(path.name) for path in self.lineages.glob("[0-9]*") if path.name.isdigit()]
        return tuple(self._log(number) for number in sorted({1, *numbers}) if self._is_whole(number))

    def current(self) -> CommitLog:
        """Return the log of the lineage in which a driver began or committed a batch last; the first if none did."""
        return max(self.logs(), key=CommitLog.last_written)

    @property
    def checkpoint(self) -> Path:
        """The current one's."""
        return self.current().checkpoint

    @property
    def lineage(self) -> int:
        """The current one's number."""
        return int(self.checkpoint.parent.name)

    def planned(self) -> dict[int, float]:
        """Return the current one's, as it does."""
        return self.current().planned()

    def committed(self) -> dict[int, float]:
        """Return the current one's, as it does."""
        return self.current().committed()

    def running(self) -> Batch | None:
        """Return the current one's, as it does."""
        return self.current().running()

    def ends(self, batch: int) -> list[Mapping[str, Any]]:
        """Return the current one's, as it does."""
        return self.current().ends(batch)

    def _log(self, lineage: int) -> CommitLog:
        return CommitLog(self.lineages / str(lineage) / self.query, self._begins[lineage])

    def _is_whole(self, lineage: int) -> bool:
        """Return whether it is the first, or an object beside it says what it was filled with."""
        if lineage not in self._begins:
            # The object may not be there yet, or not all of it; and it may be about other queries.
            with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
                mark = json.loads((self.lineages / f"{lineage}.json").read_text())
                self._begins[lineage] = int(mark["batches"][self.query])
        return lineage in self._begins


Log = CommitLog | LineageLogs


class CommitWatch:
    """Remembers commits from a thread of its own while the context lasts; Spark removes those of old batches."""

    def __init__(self, log: Log, interval: float = 0.1) -> None:
        """Watch ``log``, in all lineages that it has, every ``interval`` seconds."""
        self.log = log
        self.rewritten: set[int] = set()
        """Batches whose commit was written more than once: two drivers at a time."""
        self._interval = interval
        self._commits: dict[Path, dict[int, float]] = {}
        """By checkpoint, in order of lineages."""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commit-watch", daemon=True)

    def __enter__(self) -> Self:
        """Start to look."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join(timeout=30)

    def check(self) -> None:
        """Look once."""
        for log in self.log.logs():
            seen = log.committed()
            with self._lock:
                known = self._commits.setdefault(log.checkpoint, {})
                self.rewritten |= {batch for batch, time in seen.items() if known.get(batch, time) != time}
                known |= seen

    def commits(self) -> list[Batch]:
        """Return every commit seen so far, in order of time."""
        return sorted(itertools.chain(*self.by_checkpoint().values()), key=lambda batch: batch.time)

    def by_checkpoint(self) -> dict[Path, list[Batch]]:
        """Return every commit seen so far by where it is, each in order of time; the first lineage comes first."""
        self.check()
        with self._lock:
            known = {place: [Batch(*item) for item in batches.items()] for place, batches in self._commits.items()}
        return {place: sorted(batches, key=lambda batch: batch.time) for place, batches in known.items()}

    def _run(self) -> None:
        while not self._over.wait(self._interval):
            self.check()


def await_running(log: Log, timeout: float) -> Batch:
    """Wait for a batch that has just begun; raise AssertionError after ``timeout`` seconds."""
    before = log.running()

    def begun() -> Batch:
        now = log.running()
        assert now is not None, "no batch runs"
        assert now != before, "the batch that ran already"
        return now

    return wait_for(f"a running batch in {log.checkpoint}", begun, timeout, 0.005)
