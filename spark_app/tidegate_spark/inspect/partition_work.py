"""Filters and shortens the rows of one partition of state, in a Python worker. Pure; standard library only.

Few and short rows come back whatever the partition holds, which bounds an inspection for executor and driver. A row has
key and value as JSON texts, each of which may be None, and begin and end of its window in front if asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

Texts = tuple[str | None, str | None, int]
"""Key and rest as JSON, and 0; or what fits of them, and how long they were."""
Span = tuple[int, int]
"""Of a window: begin and end, in milliseconds since the epoch."""
CUT_KEY = 200


@dataclass(frozen=True)
class FirstRows:
    """Takes the first rows, and leaves the others unread."""

    number: int
    longest: int
    """Of a row, in characters."""

    def __call__(self, rows: Iterable[Sequence[Any]]) -> Iterator[Texts]:
        """Yield them."""
        return (short(row[0], row[1], self.longest) for row in islice(rows, self.number))


@dataclass(frozen=True)
class Count:
    """Counts rows."""

    def __call__(self, rows: Iterable[Sequence[Any]]) -> Iterator[int]:
        """Yield the number."""
        yield sum(1 for _ in rows)


@dataclass
class WindowRows:
    """What a partition has of one window."""

    count: int = 0
    rows: list[Texts] = field(default_factory=list)


@dataclass(frozen=True)
class ByWindow:
    """Counts rows by window, and keeps the first rows of each; of the earliest windows only."""

    windows: int
    """At most so many."""
    rows: int
    """Of each window."""
    longest: int

    def __call__(self, rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Span | None, int, list[Texts]]]:
        """Yield each window with its number of rows and its first ones; None for all that are later."""
        found: dict[Span, WindowRows] = {}
        latest: Span | None = None
        later = 0
        for begin, end, key, rest in rows:
            if begin is None or end is None:
                continue  # it has a place for a window, and none in it
            span = (begin, end)
            if latest is not None and span > latest:
                later += 1
                continue
            of = found.setdefault(span, WindowRows())
            of.count += 1
            if len(of.rows) < self.rows:
                of.rows.append(short(key, rest, self.longest))
            # Only now and then: each time costs a sort.
            if len(found) > 2 * self.windows:
                later += self._forget_latest(found)
                latest = max(found)
        later += self._forget_latest(found)
        for span in sorted(found):
            yield span, found[span].count, found[span].rows
        if later:
            yield None, later, []

    def _forget_latest(self, found: dict[Span, WindowRows]) -> int:
        """Leave the earliest windows; return how many rows the others had."""
        return sum(found.pop(span).count for span in sorted(found)[self.windows :])


def short(key: str | None, rest: str | None, longest: int) -> Texts:
    """Return the texts of a row, without what makes it too long to be sent."""
    size = len(key or "") + len(rest or "")
    if size <= longest:
        return key, rest, 0
    return (key if len(key or "") <= CUT_KEY else None), None, size
