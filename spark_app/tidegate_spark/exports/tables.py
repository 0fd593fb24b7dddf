"""The tables of an operator's state, and the options of Spark's state reader for each. Pure.

They come from Spark's ``state-metadata`` source: a row for each state store, with the variables of a transformWithState
as JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.contract.object_paths import checkpoint_directory, directory_of_query
from tidegate_spark.contract.snapshot_protocol import StateChoice
from tidegate_spark.exports.errors import ExportError, StateNotFoundError

VALUE, LIST, MAP, TIMERS, ROWS = "value", "list", "map", "timers", "rows"
TIMERS_NAME = "$timers"
"""No state variable's."""
_KINDS = {"ValueState": VALUE, "ListState": LIST, "MapState": MAP}
_TIMER_TYPE = "TimerState"
_JOIN = "symmetricHashJoin"
_LONGEST = 160
"""Characters of a name in that of a file: stores on plain disks take 255 bytes, and a store's keys have an end, too."""
_NAMED = "transformWithState"
"""How the names begin of Spark's operators whose state is of variables with names."""


@dataclass(frozen=True)
class StoreMetadata:
    """A row of ``state-metadata``."""

    operator: int
    operator_name: str
    store: str
    properties: str = ""


@dataclass(frozen=True)
class Table:
    """One table of an operator's state."""

    operator: int
    operator_name: str
    name: str
    kind: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the state reader, beside the batch."""
    ttl: bool = False

    def file(self, query: str, suffix: str) -> str:
        """Return the file's path in an export; state variables may be called anything."""
        return f"{query}/{self.operator}-{plain(self.name)}.{suffix}"


def plain(name: str) -> str:
    """Return a name as part of a file's, another one for each."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else f"~{ord(c):x}." for c in name)
    # The number of a character ends where no digit of it can follow, or with a dot.
    kept = re.sub(r"\.(?![0-9a-f])", "", kept) or "~"
    if len(kept) <= _LONGEST:
        return kept
    # Two of these are at no other place in a name.
    return f"{kept[:_LONGEST]}~~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def quoted(name: str) -> str:
    """Return how Spark's expressions refer to a column of this name, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def has_named_state(operator_name: str) -> bool:
    """Return whether an operator's state is of variables with names, as transformWithState has."""
    return operator_name.startswith(_NAMED)


def tables_of(stores: Iterable[StoreMetadata]) -> list[Table]:
    """Return all tables, by operator and name.

    Raises:
        ExportError: the variables of an operator are not understood.
    """
    found: dict[tuple[int, str], Table] = {}
    for store in stores:
        for table in _tables_of(store):
            found[table.operator, table.name] = table
    return [found[key] for key in sorted(found)]


def chosen(tables: list[Table], query: str, choices: tuple[StateChoice, ...]) -> list[Table]:
    """Return the tables of a query that somebody wants; all of them if nobody says which."""
    if not choices:
        return tables
    return [table for table in tables if any(matches(choice, query, table) for choice in choices)]


def matches(choice: StateChoice, query: str, table: Table) -> bool:
    """Return whether a choice takes a table in; ``query`` is the directory of its checkpoint, and may be chosen so."""
    named = not choice.query or checkpoint_directory(choice.query) in (query, directory_of_query(query))
    return named and choice.operator in (None, table.operator) and choice.name in ("", table.name)


def check_choices(tables: Mapping[str, list[Table]], choices: tuple[StateChoice, ...]) -> None:
    """Check that each choice takes something in.

    Raises:
        StateNotFoundError: one does not; the message says what there is.
    """
    for number, choice in enumerate(choices):
        if any(matches(choice, query, table) for query, of in tables.items() for table in of):
            continue
        there = [f"{query}/{table.operator}/{table.name}" for query, of in sorted(tables.items()) for table in of]
        wanted = "/".join([choice.query or "*", "*" if choice.operator is None else str(choice.operator)])
        raise StateNotFoundError(
            f"spec.export.states[{number}] ({wanted}/{choice.name or '*'}) names no state of the snapshot, which has "
            f"{', '.join(there) or 'none'} (query/operator/name)"
        )


def _tables_of(store: StoreMetadata) -> list[Table]:
    if store.operator_name == _JOIN:
        side = store.store.partition("-")[0]
        sides = (side,) if side in ("left", "right") else ("left", "right")
        return [Table(store.operator, store.operator_name, side, ROWS, {"joinSide": side}) for side in sides]
    if has_named_state(store.operator_name):
        return [_variable(store, each) for each in _variables(store)]
    return [Table(store.operator, store.operator_name, store.store, ROWS, {"storeName": store.store})]


def _variables(store: StoreMetadata) -> list[dict[str, Any]]:
    try:
        listed = json.loads(store.properties)["stateVariables"]
        # Spark has written each of them as JSON in a string, too.
        return [json.loads(each) if isinstance(each, str) else dict(each) for each in listed]
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(
            f"operator {store.operator} ({store.operator_name}) does not say which state variables it has ({error!r})"
        ) from error


def _variable(store: StoreMetadata, variable: Mapping[str, Any]) -> Table:
    name, kind = str(variable.get("stateName")), str(variable.get("stateVariableType"))
    if kind == _TIMER_TYPE:
        return Table(store.operator, store.operator_name, TIMERS_NAME, TIMERS, {"readRegisteredTimers": "true"})
    if kind not in _KINDS:
        raise ExportError(f"state variable {name!r} of operator {store.operator} is a {kind}, which is not known here")
    options = {"stateVarName": name}
    if _KINDS[kind] == LIST:
        # The order of a list's elements is part of the state.
        options["flattenCollectionTypes"] = "false"
    return Table(store.operator, store.operator_name, name, _KINDS[kind], options, bool(variable.get("ttlEnabled")))
