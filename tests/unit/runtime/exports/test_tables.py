"""Which tables the state of an operator is, and how Spark is asked for them. Pure."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate_spark.contract.object_paths import checkpoint_directory, start_directory
from tidegate_spark.contract.snapshot_protocol import StateChoice
from tidegate_spark.exports.errors import ExportError, StateNotFoundError
from tidegate_spark.exports.tables import StoreMetadata, Table, check_choices, chosen, plain, quoted, tables_of

VARIABLES = [
    {"stateName": "total", "stateVariableType": "ValueState", "ttlEnabled": True},
    {"stateName": "by kind", "stateVariableType": "MapState", "ttlEnabled": False},
    {"stateName": "recent", "stateVariableType": "ListState", "ttlEnabled": False},
    {"stateName": "$procTimers_keyToTimestamp", "stateVariableType": "TimerState", "ttlEnabled": False},
]
TWS = "transformWithStateInPySparkExec"
JOIN = [
    StoreMetadata(1, "symmetricHashJoin", f"{side}-{store}")
    for side in ("left", "right")
    for store in ("keyToNumValues", "keyWithIndexToValue")
]


def named(variables: object) -> list[Table]:
    return tables_of([StoreMetadata(0, TWS, "default", json.dumps({"timeMode": "None", "stateVariables": variables}))])


@pytest.mark.parametrize("variables", [VARIABLES, [json.dumps(each) for each in VARIABLES]])
def test_each_state_variable_is_a_table_and_so_are_the_timers(variables: object) -> None:
    assert named(variables) == [
        Table(0, TWS, "$timers", "timers", {"readRegisteredTimers": "true"}),
        Table(0, TWS, "by kind", "map", {"stateVarName": "by kind"}),
        # As arrays: the order of its elements is part of a list.
        Table(0, TWS, "recent", "list", {"stateVarName": "recent", "flattenCollectionTypes": "false"}),
        Table(0, TWS, "total", "value", {"stateVarName": "total"}, ttl=True),
    ]


def test_a_join_has_two_sides_whatever_its_stores() -> None:
    sides = [
        Table(1, "symmetricHashJoin", "left", "rows", {"joinSide": "left"}),
        Table(1, "symmetricHashJoin", "right", "rows", {"joinSide": "right"}),
    ]
    assert tables_of(JOIN) == sides
    assert tables_of([StoreMetadata(1, "symmetricHashJoin", "default")]) == sides


def test_any_other_operator_has_its_store() -> None:
    assert tables_of([StoreMetadata(2, "stateStoreSave", "default")]) == [
        Table(2, "stateStoreSave", "default", "rows", {"storeName": "default"})
    ]


@pytest.mark.parametrize("properties", ["", "{}", '{"stateVariables": 3}', '{"stateVariables": ["x"]}'])
def test_variables_that_are_not_told_are_an_error_that_names_the_operator(properties: str) -> None:
    with pytest.raises(ExportError, match=r"operator 0 \(transformWithState"):
        tables_of([StoreMetadata(0, TWS, "default", properties)])


def test_a_kind_of_state_that_is_not_known_is_named() -> None:
    with pytest.raises(ExportError, match="'x' of operator 0 is a SetState"):
        named([{"stateName": "x", "stateVariableType": "SetState"}])


def test_a_choice_takes_in_what_it_does_not_rule_out() -> None:
    tables = [*named(VARIABLES), *tables_of(JOIN)]
    assert chosen(tables, "main", ()) == tables
    assert chosen(tables, "main", (StateChoice("other"),)) == []
    assert [t.name for t in chosen(tables, "main", (StateChoice("main", 1),))] == ["left", "right"]
    picked = (StateChoice(name="left"), StateChoice("main", 0, "total"))
    assert [t.name for t in chosen(tables, "main", picked)] == ["total", "left"]


def test_a_choice_of_nothing_is_refused_with_what_there_is() -> None:
    there = {"main": tables_of(JOIN), "idle": []}
    check_choices(there, (StateChoice("main"), StateChoice(operator=1)))
    with pytest.raises(StateNotFoundError, match=r"states\[1\] \(idle/\*/\*\).*main/1/left, main/1/right"):
        check_choices(there, (StateChoice("main"), StateChoice("idle")))


@given(st.text(max_size=6), st.text(max_size=6))
@example("~7", "\u07e7")
@example("a b", "a\u020b")
def test_files_have_names_of_their_own_that_hide_from_nobody(one: str, other: str) -> None:
    assert (plain(one) == plain(other)) == (one == other)
    name = Table(0, "o", one, "value").file("main", "jsonl").rpartition("/")[2]
    assert not name.startswith(("_", "."))
    assert plain("by kind") == "by~20kind"
    long, longer = plain("状" * 150 + one), plain("状" * 150 + other)  # stores on plain disks take 255 bytes
    assert max(len(long), len(longer)) < 200
    assert (long == longer) == (one == other)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~.")


@pytest.mark.parametrize(
    ("name", "reference"), [("total", "`total`"), ("by kind", "`by kind`"), ("a.`b`", "`a.``b```")]
)
def test_a_column_is_referred_to_by_its_whole_name(name: str, reference: str) -> None:
    assert quoted(name) == reference


@pytest.mark.parametrize("query", ["counts", "counts by word!", "Zähler", "a/b"])
def test_a_query_is_chosen_by_its_name_whatever_its_directory_is_called(query: str) -> None:
    """The status of a snapshot has names, the message about a choice that takes nothing in has directories."""
    directory, empty = checkpoint_directory(query), start_directory(query, 12)
    tables = {each: [Table(0, "stateStoreSave", "default", "rows")] for each in (directory, "other")}
    for choices in ((StateChoice(query),), (StateChoice(directory),)):
        check_choices(tables, choices)
        assert [chosen(of, each, choices) for each, of in tables.items()] == [tables[directory], []]
    assert chosen(tables["other"], empty, (StateChoice(query),)) == tables["other"]
    with pytest.raises(StateNotFoundError):
        check_choices(tables, (StateChoice(f"{query}?"),))
