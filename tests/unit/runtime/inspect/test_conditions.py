"""What a key and a filter say of rows whose types are known. Pure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.inspect.conditions import (
    Condition,
    conditions_of_filter,
    conditions_of_key,
    is_whole_key,
    key_leaves,
)
from tidegate_spark.inspect.errors import BadQuestionError


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": of, "nullable": True} for name, of in fields.items()]}


WINDOW = struct(start="timestamp", end="timestamp")
COUNTS = struct(key=struct(word="string"), value=struct(count="long", mean="double", sure="boolean"))
FLIGHTS = struct(
    key=struct(carrier="string", route="string"),
    value=struct(n="integer", late="decimal(10,2)", day="date", at="timestamp", local="timestamp_ntz", raw="binary"),
)
WINDOWED = struct(key=struct(window=WINDOW, word="string"), value=struct(count="long"))


def test_a_filter_is_comparisons_that_all_hold() -> None:
    assert conditions_of_filter("value.count>=10 and key.word = 'it''s' AND value.sure = true", COUNTS) == (
        Condition(("value", "count"), ">=", "10", "long"),
        Condition(("key", "word"), "=", "it's", "string"),
        Condition(("value", "sure"), "=", "true", "boolean"),
    )


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("value.n <> 3", Condition(("value", "n"), "!=", "3", "integer")),
        ("value.n == -3", Condition(("value", "n"), "=", "-3", "integer")),
        ("value.late < 1e2", Condition(("value", "late"), "<", "100", "decimal(10,2)")),
        ("value.late > -12345678.900", Condition(("value", "late"), ">", "-12345678.900", "decimal(10,2)")),
        ("value.late = 0e999999999999", Condition(("value", "late"), "=", "0", "decimal(10,2)")),
        ("value.day >= '2024-02-29'", Condition(("value", "day"), ">=", "2024-02-29", "date")),
        (
            'value.at > "2024-02-29T12:00:00Z"',
            Condition(("value", "at"), ">", "2024-02-29T12:00:00+00:00", "timestamp"),
        ),
        (
            "value.at > '2024-02-29 13:00+01:00'",
            Condition(("value", "at"), ">", "2024-02-29T12:00:00+00:00", "timestamp"),
        ),
        (
            "value.local > '2024-02-29 13:00'",
            Condition(("value", "local"), ">", "2024-02-29T13:00:00", "timestamp_ntz"),
        ),
        ("key.route startswith 'JFK'", Condition(("key", "route"), "startswith", "JFK", "string")),
        ("key.route CONTAINS 'a \"b\"'", Condition(("key", "route"), "contains", 'a "b"', "string")),
        ("value.raw is null", Condition(("value", "raw"), "is null", type="binary")),
        ("value is not null", Condition(("value",), "is not null", type="struct")),
        ("KEY.`carrier`='AA'", Condition(("KEY", "carrier"), "=", "AA", "string")),
    ],
)
def test_each_type_has_its_values(text: str, condition: Condition) -> None:
    assert conditions_of_filter(text, FLIGHTS) == (condition,)


def test_names_that_are_no_words_are_quoted() -> None:
    odd = struct(key=struct(**{"by `kind`": "string", "and": "long"}), expiration_timestamp_ms="long")
    assert conditions_of_filter("key.`by ``kind```='a' and key.and=3 and expiration_timestamp_ms>0", odd) == (
        Condition(("key", "by `kind`"), "=", "a", "string"),
        Condition(("key", "and"), "=", "3", "long"),
        Condition(("expiration_timestamp_ms",), ">", "0", "long"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value.nothing = 3", "value has no 'nothing'; it has n, late, day"),
        ("nothing = 3", "a row has no 'nothing'; it has key, value$"),
        ("n = 3", r"a row has no 'n'; it has key, value \(there is value.n\)"),
        ("value.n.more = 3", "value.n has no 'more'; it has no fields, it is of type integer"),
        ("value = 3", r"value is a struct: name a field of it \(n, late, "),
        ("value.n = 'x'", "value.n is of type integer, and 'x' is none"),
        ("value.n = 3000000000", "value.n is of type integer"),
        ("value.late = 'x'", "decimal"),
        ("value.late = 1e999999999999", r"value.late is of type decimal\(10,2\), and '1e999999999999' is none"),
        ("value.late = 1e-999999999999", "decimal"),
        ("value.late = 123456789", "decimal"),
        ("value.late < 1.005", "decimal"),
        ("value.late = 'Infinity'", "decimal"),
        ("value.day = 'yesterday'", "value.day is of type date"),
        ("value.local = '2024-02-29T12:00:00Z'", "timestamp_ntz"),
        ("value.raw = 'x'", r"value.raw is of type binary, which cannot be compared here; tidegate_spark\.inside"),
        ("value.n contains '3'", "contains is for texts"),
        ("value.n like 3", "'like' after value.n is none of =, !=, <"),
        ("value.n = x", "'x' is no value: texts and times are in quotes"),
        ("value.n =", "has no end"),
        ("value.n", "has no end"),
        ("3 = value.n", "starts with a column, not with '3'"),
        ("value.n = 3 or value.n = 4", "joined by `and`, not by 'or'"),
        ("value.n = 3 and", "joined by `and`"),
        ("java_method('java.lang.System', 'exit')", "is not understood at"),
        ("value.n = (select 1)", "is not understood at"),
        ("value.n = 'x", "is not understood at"),
        (" ", "has 0 conditions"),
        (" and ".join(["value.n=1"] * 21), "has 21 conditions; 1 to 20"),
    ],
)
def test_what_a_filter_can_not_say_is_told_with_how_it_can(text: str, message: str) -> None:
    with pytest.raises(BadQuestionError, match=f"^filter: .*{message}"):
        conditions_of_filter(text, FLIGHTS)


def test_a_key_of_one_column_is_its_value() -> None:
    word = ("key", "word")
    assert conditions_of_key("it's {x}", COUNTS) == (Condition(word, "=", "it's {x}", "string"),)
    assert conditions_of_key('{"word": "{x}"}', COUNTS) == (Condition(word, "=", "{x}", "string"),)
    assert conditions_of_key('{"word": null}', COUNTS) == (Condition(word, "is null", type="string"),)


def test_a_key_of_several_columns_is_an_object_of_some_or_all_of_them() -> None:
    carrier = Condition(("key", "carrier"), "=", "AA", "string")
    route = Condition(("key", "route"), "=", "JFK-LAX", "string")
    some = conditions_of_key('{"carrier": "AA"}', FLIGHTS)
    whole = conditions_of_key('{"route": "JFK-LAX", "carrier": "AA"}', FLIGHTS)
    assert some == (carrier,)
    assert set(whole) == {carrier, route}
    assert not is_whole_key(some, FLIGHTS)
    assert is_whole_key(whole, FLIGHTS)
    assert not is_whole_key(conditions_of_key('{"route": null, "carrier": "AA"}', FLIGHTS), FLIGHTS)


def test_a_window_in_the_key_is_an_object_in_the_object() -> None:
    found = conditions_of_key('{"window": {"start": "2024-01-01T00:00:00Z"}, "word": "to"}', WINDOWED)
    assert [each.path for each in found] == [("key", "window", "start"), ("key", "word")]
    assert found[0].value == "2024-01-01T00:00:00+00:00"
    assert key_leaves(WINDOWED) == [("key", "window", "start"), ("key", "window", "end"), ("key", "word")]


def test_a_number_in_a_key_is_what_was_written_to_its_last_digit() -> None:
    account = struct(key=struct(account="decimal(38,2)", part="long"))
    found = conditions_of_key('{"account": 12345678901234567890.12, "part": 12345678901234567}', account)
    assert [each.value for each in found] == ["12345678901234567890.12", "12345678901234567"]


@pytest.mark.parametrize(
    ("text", "schema", "message"),
    [
        ("AA", FLIGHTS, r"has 2 columns \(carrier, route\): say"),
        ('{"carier": "AA"}', FLIGHTS, "key has no 'carier'; it has carrier, route"),
        ('{"carrier": "AA"', FLIGHTS, "begins like a JSON object and is none"),
        ("{}", FLIGHTS, "the object is empty"),
        ('{"a":' * 100_000, FLIGHTS, "begins like a JSON object and is none"),
        ("x", struct(value=struct(n="long")), "this state has no key"),
        ('{"word": {"x": 1}}', COUNTS, "key.word has no 'x'"),
        ("x", struct(key=struct(n="long")), "key.n is of type long, and 'x' is none"),
    ],
)
def test_what_is_no_key_is_told_with_what_is(text: str, schema: dict[str, Any], message: str) -> None:
    with pytest.raises(BadQuestionError, match=f"^key: .*{message}"):
        conditions_of_key(text, schema)


def test_capitals_make_a_difference_only_where_both_are_there() -> None:
    both = struct(key=struct(k="long", K="string"))
    assert conditions_of_filter("key.K='x'", both)[0].type == "string"
    assert conditions_of_filter("key.WORD='x'", COUNTS)[0].path == ("key", "WORD")


@given(st.text(max_size=40))
def test_whatever_is_written_is_conditions_or_a_reason(text: str) -> None:
    for read in (conditions_of_filter, conditions_of_key):
        try:
            assert read(text, FLIGHTS)
        except BadQuestionError:
            continue


@given(st.text())
def test_every_text_can_be_asked_for(text: str) -> None:
    quoted = text.replace("'", "''")
    assert conditions_of_filter(f"key.word = '{quoted}'", COUNTS) == (Condition(("key", "word"), "=", text),)
