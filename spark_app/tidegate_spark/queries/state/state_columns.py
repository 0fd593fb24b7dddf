"""Compares the columns of state between two versions. Pure.

Spark compares types by position and no names: two columns of one type that change places are read for one another. A
renamed column alone is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidegate_spark.snapshots.checkpoint import operator_files
from tidegate_spark.snapshots.checkpoint.state_schema import Columns, Family


@dataclass(frozen=True)
class Difference:
    """Columns of one place in the state that have other names in the new version."""

    operator: int
    what: str
    """``key`` or ``value``."""
    before: tuple[str, ...]
    """All names of the columns there, in order: those of the state."""
    now: tuple[str, ...]
    """Those of the new version."""
    misread: bool
    """Spark would read a column for another one."""


def differences(
    operator: int, before: operator_files.Columns, now: operator_files.Columns, *, by_name: bool = False
) -> list[Difference]:
    """Return where the columns of an operator's state have other names than the new version's.

    What has other types or another number of columns is not among them: Spark refuses that itself. Nor is what only one
    of the two has, or the state of another operator.

    Args:
        operator: its number.
        before: its state in the checkpoint.
        now: what the new version makes of it.
        by_name: values of several column families are stored with their names, as in Avro: order says nothing there.
    """
    if before.name != now.name:
        return []
    found: list[Difference] = []
    for place, old in before.families.items():
        new = now.families.get(place)
        if new is not None:
            found += _of_family(operator, old, new, before.name in operator_files.AGGREGATIONS, by_name)
    return list(dict.fromkeys(found))


def _of_family(operator: int, old: Family, new: Family, aggregates: bool, by_name: bool) -> Iterator[Difference]:
    for names in _levels(old.key, new.key):
        yield Difference(operator, "key", *names, misread=_changes_places(*names))
    keys = {name.casefold() for name in _names(old.key)}
    for before, now in _levels(old.value, new.value):
        another = aggregates and before == _names(old.value) and _has_another_function(before, now, keys, by_name)
        if another or not by_name:
            misread = another or _changes_places(before, now)
            yield Difference(operator, "value", before, now, misread=misread)


def _has_another_function(before: tuple[str, ...], now: tuple[str, ...], keys: set[str], by_name: bool) -> bool:
    """Return whether an aggregation's values are of other functions: that, or a grouping column, is what a name says.

    Args:
        before: the names of the state.
        now: those of the new version, as many.
        keys: the grouping columns' of the state, in lower case.
        by_name: the values are found by their names, in whatever order they are.
    """
    olds, news = [name.casefold() for name in before], [name.casefold() for name in now]
    if by_name:
        return bool(set(olds) - set(news) - keys)
    return any(old != new and old not in keys for old, new in zip(olds, news, strict=True))


def _levels(old: Columns, new: Columns) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the names of both, outermost first, wherever they are not the same; each pair has as many."""
    before, now = _names(old), _names(new)
    if len(before) != len(now):
        return
    if [name.casefold() for name in before] != [name.casefold() for name in now]:
        yield before, now
    for one, other in zip(old, new, strict=True):
        yield from _within(one.get("type"), other.get("type"))


def _within(old: Any, new: Any) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if not isinstance(old, dict) or not isinstance(new, dict) or old.get("type") != new.get("type"):
        return
    if old.get("type") == "struct":
        yield from _levels(old["fields"], new["fields"])
    for part in ("elementType", "keyType", "valueType"):
        yield from _within(old.get(part), new.get(part))


def _changes_places(before: tuple[str, ...], now: tuple[str, ...]) -> bool:
    # A name has the case in which a script asked for it, and means the same column in any.
    before, now = tuple(map(str.casefold, before)), tuple(map(str.casefold, now))
    pairs = [(old, new) for old, new in zip(before, now, strict=True) if old != new]
    return any(new in before or old in now for old, new in pairs)


def _names(columns: Columns) -> tuple[str, ...]:
    return tuple(str(column.get("name")) for column in columns)
