"""Builds an inspection's JSON answer from the partitions' parts. Pure; standard library only."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tidegate_spark.inspect.partition_work import Span, Texts, WindowRows

LARGEST_ANSWER = 4 * 1024 * 1024
"""Characters of all rows together; each of them may have its share."""
LEAST_ROW = 1024
_CYCLE = 146_097 * 86_400_000
"""Milliseconds of 400 years, after which the calendar begins again."""


@dataclass(frozen=True)
class Read:
    """How much of a table was read."""

    partitions: int
    """That were read."""
    of: int
    proves_all: bool = False
    """Nothing that was asked for can be in the others."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing for want of reading."""
        return self.proves_all or self.partitions >= self.of

    def as_json(self) -> dict[str, int]:
        """Return it as part of an answer."""
        return {"read": self.partitions, "of": self.of}


def longest_row(rows: int) -> int:
    """Return how many characters a row may have if there may be so many."""
    return max(LEAST_ROW, LARGEST_ANSWER // max(1, rows))


def row_of(texts: Texts) -> dict[str, Any]:
    """Return a row: ``key`` and the other columns; ``tooLong`` instead of what is not sent."""
    key, rest, size = texts
    found: dict[str, Any] = {} if key is None else {"key": parsed(key)}
    if size:
        return {**found, "tooLong": size}
    return {**found, **(parsed(rest) if rest is not None else {})}


def rows_answer(found: Iterable[Texts], limit: int, read: Read) -> dict[str, Any]:
    """Return the rows, and whether they are all that were asked for.

    Args:
        found: of all partitions that were read, at least one more than ``limit`` if there are more.
        limit: at most so many.
        read: how much was.
    """
    every = list(found)
    return {
        "rows": [row_of(texts) for texts in every[:limit]],
        "complete": read.complete and len(every) <= limit,
        "partitions": read.as_json(),
    }


def count_answer(found: Iterable[int], read: Read) -> dict[str, Any]:
    """Return how many rows there are, at least."""
    return {"count": sum(found), "complete": read.complete, "partitions": read.as_json()}


def windows_answer(
    found: Iterable[tuple[Span | None, int, Sequence[Texts]]], limit: int, rows: int, watermark_ms: int, read: Read
) -> dict[str, Any]:
    """Return windows, the earliest first, with their first rows, and how many rows later ones have.

    A window is closed if the watermark has passed its end: nothing is added to it any more, and the next batch puts it
    out or forgets it. In output mode complete Spark goes by no watermark, and keeps every window open.

    Args:
        found: what partitions gave.
        limit: windows at most.
        rows: of each, at most.
        watermark_ms: that the next batch goes by; 0: none.
        read: how much was.
    """
    together: dict[Span, WindowRows] = {}
    later = 0
    for span, count, texts in found:
        if span is None:
            later += count
            continue
        of = together.setdefault(span, WindowRows())
        of.count += count
        of.rows += texts[: max(0, rows - len(of.rows))]
    first = sorted(together)[:limit]
    later += sum(together[span].count for span in sorted(together)[limit:])
    return {
        "windows": [_window(span, together[span], watermark_ms) for span in first],
        "rowsInLaterWindows": later,
        "complete": read.complete and not later,
        "partitions": read.as_json(),
    }


def _window(span: Span, of: WindowRows, watermark_ms: int) -> dict[str, Any]:
    begin, end = span
    return {
        "start": time_of(begin),
        "end": time_of(end),
        "closed": end <= watermark_ms if watermark_ms > 0 else None,
        "count": of.count,
        "rows": [row_of(texts) for texts in of.rows],
    }


def time_of(milliseconds: int) -> str:
    """Return a time as people write it, in UTC; a year beyond four digits as Java writes it, such as ``+20000``.

    Event times are what records say. One that is wrong by a unit is thousands of years ahead, and takes the watermark
    with it.
    """
    cycles, within = divmod(milliseconds, _CYCLE)
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=within)
    year = at.year + 400 * cycles
    written = f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"
    return written + at.isoformat(timespec="milliseconds")[4:] + "Z"


def head_of(query: str, batch: int, began_ms: int, watermark_ms: int) -> dict[str, Any]:
    """Return what an answer about a committed batch starts with."""
    return {
        "query": query,
        "batch": batch,
        "batchBegan": time_of(began_ms) if began_ms else None,
        "watermark": time_of(watermark_ms) if watermark_ms else None,
    }


def parsed(text: str | bytes) -> Any:
    """Return the value of JSON, without loss: a decimal that is not to be had as a float is a ``Decimal``."""
    return json.loads(text, parse_float=_number)


def _number(text: str) -> float | Decimal:
    exact, near = Decimal(text), float(text)
    return near if exact == Decimal(repr(near)) else exact


def as_text(answer: Mapping[str, Any], indent: int | None = None) -> str:
    """Return an answer as it is sent, with decimals as numbers of all their digits."""
    numbers: list[str] = []

    def to_text(mark: str) -> str:
        def replaced(value: Any) -> str:
            if not isinstance(value, Decimal):
                return str(value)
            numbers.append(str(value))
            return f"{mark}{len(numbers) - 1}"

        return json.dumps(answer, ensure_ascii=False, allow_nan=False, default=replaced, indent=indent)

    text = to_text("")
    if not numbers:
        return text
    # What stands for a number is nowhere in the answer: whoever wrote the state may know this program.
    mark = next(mark for mark in (f"decimal{number}-" for number in itertools.count()) if mark not in text)
    numbers.clear()
    return re.sub(f'"{mark}([0-9]+)"', lambda match: numbers[int(match[1])], to_text(mark))
