"""The position of a batch in the control log, in Spark's offset log. Pure, but for :class:`Positions`."""

from __future__ import annotations

import contextlib
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from tidegate_spark.contract.object_paths import EMPTY_START, checkpoint_directory, is_number
from tidegate_spark.storage.app_objects import AppObjects

SOURCE = "tidegate-control"
"""The data source's name, and the one key of its offsets."""
OFFSETS, COMMITS = "offsets", "commits"
MOST_CACHED = 256
AWAY_SECONDS = 30 * 86400.0
"""A query that the program does not start, and whose last batch was planned so long before that of another one, holds
nothing of the log back."""
SELDOM_SECONDS = 86400.0
"""A program may start a query once a day: until then nobody can say that it does not start it any more."""
_OFFSET = re.compile(r'\{\s*"' + SOURCE + r'"\s*:\s*(\d+)\s*\}')


def position_in(text: str) -> int | None:
    """Return the position that ``offsets/<batch>`` says, None if the query has no source of control messages.

    Of several such sources the one that is ahead counts: it is the same one at each replay.
    """
    # Version and settings come first.
    return position_of_sources("\n".join(text.split("\n")[2:]))


def position_of_sources(text: str) -> int | None:
    """Return the position in the offsets of a batch's sources, None if there is none; see :func:`position_in`."""
    return max((int(match[1]) for match in _OFFSET.finditer(text)), default=None)


def position_of_progress(sources: list[Mapping[str, Any]]) -> int:
    """Return the position at which a batch ended, from Spark's report of its sources; -1 if it has none."""
    ends = [source.get("endOffset") for source in sources]
    found = [end[SOURCE] for end in ends if isinstance(end, Mapping) and isinstance(end.get(SOURCE), int)]
    return max(found, default=-1)


def without_control(sources: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return Spark's reports of sources without that of control messages, unless there is no other."""
    others = [source for source in sources if position_of_progress([source]) < 0]
    return others or sources


def joins_late(text: str) -> bool:
    """Return whether a query with these offsets cannot be given a source of control messages.

    It has none, and its sources are known by their numbers; where they have names, one more may come.
    """
    return position_in(text) is None and text.partition("\n")[0].strip() == "v1"


class Positions:
    """Positions of one lineage's batches, read from its checkpoints; remembered once read. Thread safe."""

    def __init__(
        self,
        lineage: int,
        planned: Callable[[str, int], str] = lambda query, batch: "",
        directory_of: Callable[[str], str] = checkpoint_directory,
    ) -> None:
        """Look at a lineage.

        Args:
            lineage: its number.
            planned: returns what Spark knows of the offsets of a query's batch that runs, empty if nothing.
            directory_of: returns the name of the directory of a query's checkpoint.
        """
        self._lineage, self._of_spark, self._directory_of = lineage, planned, directory_of
        self._known: OrderedDict[tuple[str, int], int | None] = OrderedDict()
        self._listed: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def of(self, repository: AppObjects, query: str, batch: int) -> int | None:
        """Return the position of a batch, None if it has none; raises what the store's client raises.

        Raises:
            LookupError: there is no such batch.
        """
        key = (self._directory_of(query), batch)
        with self._lock:
            if key in self._known:
                return self._known[key]
        found = repository.store.get(self._directory(repository, query, OFFSETS, str(batch)))
        if found is None:
            raise LookupError(f"query {query!r} has no batch {batch} in its offset log")
        return self._remember(key, position_in(found[0].decode()))

    def of_running(self, query: str, batch: int) -> int | None:
        """Return the position of a batch that runs now; None if Spark does not say, or there is none."""
        key = (self._directory_of(query), batch)
        with self._lock:
            if key in self._known:
                return self._known[key]
        position = position_of_sources(self._of_spark(query, batch))
        return self._remember(key, position) if position is not None else None

    def _remember(self, key: tuple[str, int], position: int | None) -> int | None:
        with self._lock:
            self._known[key] = position
            while len(self._known) > MOST_CACHED:
                self._known.popitem(last=False)
        return position

    def newest_text(self, repository: AppObjects, query: str) -> str | None:
        """Return the newest entry of a query's offset log, None if there is none."""
        batches = self._numbers(repository, query, OFFSETS)
        found = (
            repository.store.get(self._directory(repository, query, OFFSETS, str(max(batches)))) if batches else None
        )
        return found[0].decode() if found is not None else None

    def newest(self, repository: AppObjects, query: str) -> int | None:
        """Return the position of a query's newest committed batch, None if there is none, or it has none."""
        batches = self._batches(repository, query)
        return self.of(repository, query, batches[-1]) if batches else None

    def newest_batch(self, repository: AppObjects, query: str) -> int:
        """Return a query's newest committed batch, -1 if there is none."""
        return max(self._batches(repository, query), default=-1)

    def batch_of(self, repository: AppObjects, query: str, sequence: int) -> int | None:
        """Return the first committed batch with a position of ``sequence`` or more, as far as there are any."""
        found = None
        # Asked for many messages at a time: what was listed before has most of them.
        with contextlib.suppress(LookupError):
            found = self._first(repository, query, self._listed.get(self._directory_of(query), []), sequence)
        if found is None:
            listed = self._listed[self._directory_of(query)] = self._batches(repository, query)
            found = self._first(repository, query, listed, sequence)
        return found

    def _first(self, repository: AppObjects, query: str, batches: Sequence[int], sequence: int) -> int | None:
        low, high = 0, len(batches)
        while low < high:
            middle = (low + high) // 2
            position = self.of(repository, query, batches[middle])
            if position is not None and position >= sequence:
                high = middle
            else:
                low = middle + 1
        return batches[low] if low < len(batches) else None

    def oldest(self, repository: AppObjects, here: Collection[str] = (), away: float = math.inf) -> int | None:
        """Return the lowest position of any batch of the lineage that may be asked for, None if none has one.

        Nothing continues from the checkpoint of an empty start but the query that was started so.

        Args:
            repository: the application's.
            here: directories of the checkpoints of queries that this process started: all their batches count.
            away: seconds; other queries count unless their newest batch is so much older than the newest of all.

        Raises:
            LookupError: of a query, no batch that was listed is there any more.
        """
        planned = self._planned(repository)
        # By the store's clock alone, and not by the time in which nothing ran.
        since = max((time for batches in planned.values() for time in batches.values()), default=0.0) - away
        found = [
            self._first_there(repository, query, batches)
            for query, batches in planned.items()
            if query in here or (EMPTY_START not in query and max(batches.values()) >= since)
        ]
        return min((position for position in found if position is not None), default=None)

    def _first_there(self, repository: AppObjects, query: str, batches: Iterable[int]) -> int | None:
        """Return the position of the lowest batch that is there: Spark removes the oldest ones while others read."""
        *older, newest = sorted(batches)
        for batch in older:
            with contextlib.suppress(LookupError):
                return self.of(repository, query, batch)
        return self.of(repository, query, newest)

    def asked(self, repository: AppObjects) -> frozenset[str]:
        """Return the checkpoints' directories of the lineage's queries whose newest batch has a position."""
        planned = self._planned(repository).items()
        return frozenset(query for query, batches in planned if self.of(repository, query, max(batches)) is not None)

    def _planned(self, repository: AppObjects) -> dict[str, dict[int, float]]:
        """Return the batches of which there are offsets, and when those were written, by the checkpoint's directory."""
        root = repository.lineage_key(self._lineage) + "/"
        found: dict[str, dict[int, float]] = {}
        for entry in repository.store.list(root):
            query, _, path = entry.key[len(root) :].partition("/")
            directory, _, name = path.partition("/")
            if directory == OFFSETS and is_number(name):
                found.setdefault(query, {})[int(name)] = entry.modified
        return found

    def _batches(self, repository: AppObjects, query: str) -> list[int]:
        """Return the committed batches of which there are offsets, the lowest first."""
        listed = [self._numbers(repository, query, log) for log in (OFFSETS, COMMITS)]
        return sorted(listed[0] & listed[1])

    def _numbers(self, repository: AppObjects, query: str, log: str) -> set[int]:
        prefix = self._directory(repository, query, log) + "/"
        names = (entry.key[len(prefix) :] for entry in repository.store.list(prefix))
        return {int(name) for name in names if is_number(name)}

    def _directory(self, repository: AppObjects, query: str, *parts: str) -> str:
        return repository.lineage_key(self._lineage, self._directory_of(query), *parts)
