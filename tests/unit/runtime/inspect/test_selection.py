"""Which table of a query's state is meant. Pure; and where the rows of a table have their window."""

from typing import Any

import pytest

from tidegate_spark.exports.tables import Table
from tidegate_spark.inspect.errors import BadQuestionError, NotThereError
from tidegate_spark.inspect.selection import state_of, table_of, window_path

TOTAL, RECENT = (Table(0, "transformWithState", name, kind) for name, kind in (("total", "value"), ("recent", "list")))
COUNTS = Table(1, "stateStoreSave", "default", "rows")
TABLES = [TOTAL, RECENT, COUNTS]


def test_the_only_table_of_an_operator_needs_no_name() -> None:
    assert table_of(TABLES, "main", 1, None) == COUNTS
    assert table_of(TABLES, "main", 0, "recent") == RECENT


def test_one_of_several_has_to_be_named() -> None:
    with pytest.raises(BadQuestionError, match=r"^name: operator 0 of query 'main' keeps several: total, recent"):
        table_of(TABLES, "main", 0, None)


def test_what_is_not_there_is_told_with_what_is() -> None:
    with pytest.raises(NotThereError, match=r"no operator 2 with state; it has 0 \(transformWithState\), 1 \(stateSt"):
        table_of(TABLES, "main", 2, None)
    with pytest.raises(NotThereError, match="nothing that is called 'x'; it has total, recent"):
        table_of(TABLES, "main", 0, "x")
    with pytest.raises(NotThereError, match="'main' keeps no state"):
        table_of([], "main", 0, None)


def test_operators_are_listed_with_what_they_keep() -> None:
    assert state_of([COUNTS, TOTAL]) == [
        {
            "operator": 0,
            "operatorName": "transformWithState",
            "state": [{"name": "total", "kind": "value", "ttl": False}],
        },
        {
            "operator": 1,
            "operatorName": "stateStoreSave",
            "state": [{"name": "default", "kind": "rows", "ttl": False}],
        },
    ]


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": of, "nullable": True} for name, of in fields.items()]}


TIMES = struct(start="timestamp", end="timestamp")
LOCAL_TIMES = struct(start="timestamp_ntz", end="timestamp_ntz")


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (struct(key=struct(word="string", window=TIMES), value=struct(count="long")), ("key", "window")),
        (struct(key=struct(word="string"), value=struct(session_window=LOCAL_TIMES)), ("value", "session_window")),
        (struct(value=struct(w=TIMES), key=struct(v=TIMES)), ("key", "v")),
        (struct(window=TIMES), ("window",)),
        (struct(key=struct(window=struct(start="long", end="long"))), None),
        (struct(key=struct(word="string"), value=struct(count="long")), None),
    ],
)
def test_a_window_is_a_struct_of_two_times(schema: dict[str, Any], path: tuple[str, ...] | None) -> None:
    assert window_path(schema) == path
