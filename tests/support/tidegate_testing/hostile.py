"""Objects as somebody stores them who means harm: too deep, too long, of other types. Deterministic."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

DEEP = 100_000
"""Levels: the API server takes ten thousand."""


def nested(levels: int, inner: str = "1") -> str:
    """Return JSON that is nested so deep, in objects and lists."""
    return '{"a":[' * (levels // 2) + inner + "]}" * (levels // 2)


VALUES: tuple[Callable[[random.Random], str], ...] = (
    lambda r: nested(r.choice((60, 150, 900, 2_000, DEEP))),
    lambda r: "9" * r.choice((20, 400, 5_000, 50_000)),
    lambda r: "-" + "9" * 5_000,
    lambda r: f"1e{r.choice((3, 308, 309, 99999))}",
    lambda r: json.dumps("x" * r.choice((1, 70_000, 1_400_000))),
    lambda r: json.dumps("\\" * r.choice((1, 2, 70_001)) + '"'),
    lambda r: json.dumps(r.choice(("\u0000", "\ud7ff", "\u202e", "\U0001f300", "\x1b[31m", "a\nb", ""))),
    lambda r: r.choice(("null", "true", "[]", "{}", "0", "-1", "1.5", '""')),
    lambda r: json.dumps(["x"] * r.choice((1, 1_000))),
    lambda r: json.dumps({f"k{n}": n for n in range(r.choice((1, 1_000)))}),
    lambda r: '{"a":1,"a":{"a":2},"a":[3]}',
)
_NAMING = ("name", "namespace", "uid", "resourceVersion")


def hostile_objects(good: dict[str, Any], number: int, seed: int) -> Iterator[bytes]:
    """Yield so many objects, each made of a good one with one or a few of its values replaced; names stay distinct.

    Args:
        good: an object as the API server has it.
        number: how many.
        seed: of the choices.
    """
    r = random.Random(seed)
    for count in range(number):
        place = {"name": f"hostile-{count}", "uid": f"hostile-{count}", "resourceVersion": str(100 + count)}
        yield _spoilt({**good, "metadata": {**good["metadata"], **place}}, r)


def hostile_documents(good: dict[str, Any], number: int, seed: int) -> Iterator[bytes]:
    """Yield so many documents, each made of a good one (a stored form, an agent's answer) in the same way.

    Args:
        good: what is stored or answered.
        number: how many.
        seed: of the choices.
    """
    r = random.Random(seed)
    for _ in range(number):
        yield _spoilt(good, r)


def _spoilt(good: dict[str, Any], r: random.Random) -> bytes:
    """Return a document with one or a few of its values replaced."""
    changed = json.loads(json.dumps(good))
    marks: dict[str, str] = {}
    for _ in range(r.choice((1, 1, 1, 3))):
        mark = f"@{len(marks)}@"
        marks[json.dumps(mark)] = r.choice(VALUES)(r)
        _put(changed, r.choice(list(_paths(changed))), mark)
    text = json.dumps(changed, separators=(",", ":"))
    for mark, value in marks.items():
        text = text.replace(mark, value)
    return text.encode("utf-8", "surrogatepass")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where values are, apart from what makes an object this one: without that no API server would have it."""
    if path and path != ("metadata",) and path not in {("metadata", each) for each in _NAMING}:
        yield path
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _paths(part, (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _paths(part, (*path, number))


def _put(value: Any, path: tuple[Any, ...], found: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = found
