"""Which table of a query's state is meant, and which there are. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidegate_spark.exports.tables import Table
from tidegate_spark.inspect.conditions import Path, fields_of
from tidegate_spark.inspect.errors import BadQuestionError, NotThereError


def state_of(tables: Iterable[Table]) -> list[dict[str, Any]]:
    """Return the operators of a query with what each of them keeps, as an answer names them."""
    found: dict[int, dict[str, Any]] = {}
    for table in tables:
        named = {"operator": table.operator, "operatorName": table.operator_name, "state": []}
        of = found.setdefault(table.operator, named)
        of["state"].append({"name": table.name, "kind": table.kind, "ttl": table.ttl})
    return [found[number] for number in sorted(found)]


def table_of(tables: Iterable[Table], query: str, operator: int, name: str | None) -> Table:
    """Return the table that is meant.

    Args:
        tables: of the query.
        query: its name, for words.
        operator: its number.
        name: of the table; None if the operator has only one.

    Raises:
        NotThereError: there is no such operator or table.
        BadQuestionError: several are there, and none was named.
    """
    every = list(tables)
    if not every:
        raise NotThereError(f"query {query!r} keeps no state")
    of = [table for table in every if table.operator == operator]
    if not of:
        known = sorted({f"{table.operator} ({table.operator_name})" for table in every})
        raise NotThereError(f"query {query!r} has no operator {operator} with state; it has {', '.join(known)}")
    known = [table.name for table in of]
    if name is None:
        if len(of) == 1:
            return of[0]
        raise BadQuestionError("name", f"operator {operator} of query {query!r} keeps several: {', '.join(known)}")
    fitting = [table for table in of if table.name == name]
    if not fitting:
        what = f"operator {operator} of query {query!r}"
        raise NotThereError(f"{what} keeps nothing that is called {name!r}; it has {', '.join(known)}")
    return fitting[0]


def window_path(schema: Any) -> Path | None:
    """Return where the rows of a table have their window: the first struct of two times, ``start`` and ``end``.

    Args:
        schema: what ``StructType.jsonValue()`` gives; the key's columns come first.
    """
    for column in sorted(fields_of(schema), key=lambda field: str(field["name"]) != "key"):
        if _is_window(column["type"]):
            return (column["name"],)
        for field in fields_of(column["type"]):
            if _is_window(field["type"]):
                return (column["name"], field["name"])
    return None


def _is_window(of: Any) -> bool:
    fields = fields_of(of)
    times = all(field["type"] in ("timestamp", "timestamp_ntz") for field in fields)
    return [field["name"] for field in fields] == ["start", "end"] and times


def with_windows(query: str, tables: Iterable[Table]) -> str:
    """Return the words for a query that has no windows."""
    kept = ", ".join(f"{table.operator}/{table.name}" for table in tables) or "none"
    return f"no state of query {query!r} that was asked for has windows (its state is {kept}, operator/name)"
