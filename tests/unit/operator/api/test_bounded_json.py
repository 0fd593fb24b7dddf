"""JSON that somebody else wrote is cut to what every reader survives, and says where. Pure."""

import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.values.bounded_json import (
    DEEPEST,
    MOST_DIGITS,
    MOST_VALUES,
    TOO_DEEP,
    TOO_LONG,
    bounded,
    has_too_many_values,
    is_cut,
    is_fit,
    why_cut,
)
from tidegate_spark.contract.control_protocol import is_deeper


def nested(levels: int, inner: bytes = b"1") -> bytes:
    return b'{"a":' * levels + inner + b"}" * levels


@pytest.mark.parametrize("levels", [DEEPEST + 1, 2_000, 100_000])
def test_what_is_nested_too_deep_is_replaced_and_named(levels: int) -> None:
    body = b'{"metadata":{"name":"x"},"spec":{"payload":' + nested(levels) + b',"type":"t"}}'
    cut = json.loads(bounded(body))
    assert (cut["metadata"], cut["spec"]["type"]) == ({"name": "x"}, "t")
    why = why_cut(cut)
    assert why.startswith("spec.payload.a.a")
    assert why.endswith(f"nested deeper than {DEEPEST} levels")
    assert is_cut(bounded(body))


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 5_000, "1" * 5_000 + ".5e7"])
def test_a_number_that_is_too_long_is_replaced_and_named(number: str) -> None:
    cut = json.loads(bounded(b'{"spec":{"a":"b","n":%s,"m":7}}' % number.encode()))
    assert cut == {"spec": {"a": "b", "n": TOO_LONG, "m": 7}}
    assert why_cut(cut) == f"spec.n: a number of more than {MOST_DIGITS} digits"


def test_brackets_and_digits_in_texts_are_no_depth_and_no_numbers() -> None:
    body = json.dumps({"a": "[" * 5_000, "b": '\\"' * 500 + "{", "c": "1" * 5_000}).encode()
    assert bounded(body) == body


def test_what_stands_deep_after_something_deep_is_cut_too() -> None:
    body = b"[" + nested(300) + b",1," + nested(300) + b"]"
    assert json.loads(bounded(body))[1] == 1
    assert bounded(body).count(msgspec.json.encode(TOO_DEEP)) == 2


@pytest.mark.parametrize(
    "body", [b"", b"[" * 5_000, b"]" * 5_000, b'"' * 5_001, b"\xff" * 5_000, b'{"a":' * 5_000 + b'"']
)
def test_what_is_no_json_harms_nobody(body: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(bounded(body).decode("utf-8", "replace"))


@pytest.mark.parametrize(
    "piece", [b'"\\', b'"', b'"a', b"\\", b"9" * MOST_DIGITS + b"-", b"9" * MOST_DIGITS + b'"', b"[]", b"{["]
)
@pytest.mark.parametrize("start", [b"[" * (DEEPEST + 1), b'["'])
def test_a_megabyte_of_anything_is_read_in_one_go(piece: bytes, start: bytes) -> None:
    """What starts over from each quotation mark or each digit needs 10**12 steps for these, and is never done."""
    body = start + piece * (1024 * 1024 // len(piece))
    assert is_fit(bounded(body)) or not is_valid(body)


def is_valid(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


@pytest.mark.parametrize(
    ("body", "fit"),
    [
        (b'{"a":[' + b",".join([b'{"b":[]}'] * 1000) + b"]}", True),
        (nested(DEEPEST), True),
        (nested(DEEPEST + 1), False),
        (b"[" * DEEPEST + b"{},[]" + b"]" * DEEPEST, False),
        (b'["' + b"[" * 500 + b'\\"]"]', True),
        (b"[" + b"9" * MOST_DIGITS + b"]", True),
        (b"[" + b"9" * (MOST_DIGITS + 1) + b"]", False),
    ],
)
def test_only_what_is_too_deep_or_too_long_is_cut(body: bytes, fit: bool) -> None:
    assert is_fit(body) is fit
    assert (bounded(body) == body) is fit


TEXTS = st.text().filter(lambda text: not why_cut(text))
LEAVES = st.none() | st.booleans() | st.integers() | TEXTS
TREES = st.recursive(LEAVES, lambda part: st.lists(part) | st.dictionaries(TEXTS, part))


@given(TREES, st.integers(0, 120))
def test_what_is_shallow_stays_as_it_is_and_what_is_not_is_readable(tree: object, more: int) -> None:
    body = msgspec.json.encode(tree)
    wrapped = b"[" * more + body + b"]" * more
    read = json.loads(bounded(wrapped))
    deep = is_deeper(json.loads(wrapped), DEEPEST)
    assert (read == json.loads(wrapped)) == (not deep)
    assert bool(why_cut(read)) == deep


@pytest.mark.parametrize(
    ("value", "levels", "deeper"), [(1, 0, False), ([1], 0, True), ([1], 1, False), ([{}], 1, True)]
)
def test_depth_is_counted_in_lists_and_objects(value: object, levels: int, deeper: bool) -> None:
    assert is_deeper(value, levels) == deeper


@pytest.mark.parametrize("value", [b"{}", b"[]", b"1", b'""', b'{"a":1}'])
def test_values_are_counted_whatever_they_are(value: bytes) -> None:
    assert has_too_many_values(b"[" + b",".join([value] * (MOST_VALUES + 1)) + b"]")
    assert not has_too_many_values(b"[" + b",".join([value] * (MOST_VALUES // 3)) + b"]")


def test_what_is_in_texts_are_no_values() -> None:
    assert not has_too_many_values(json.dumps({"a": ',[{"' * MOST_VALUES}).encode())


@pytest.mark.parametrize("text", ['"', '\\"', "\\\\", 'a"b', "[", "x" * 70_000, "\\" * 70_001])
def test_brackets_in_texts_are_none_wherever_a_text_lies(text: str) -> None:
    for before in range(64 * 1024 - 8, 64 * 1024 + 8):
        body = json.dumps([" " * before, text + "[" * (DEEPEST + 1), [{}] * DEEPEST]).encode()
        assert is_fit(body)
        assert not is_fit(body[:-2] + b"," + nested(DEEPEST) + b"]]")


def test_millions_of_short_texts_need_little_more_memory_than_they_are_long() -> None:
    """Eleven pods of 1.4 MB with short variables needed 400 MB before one of them was decoded."""
    body = b'{"env":[' + b",".join(b'{"name":"a%d","value":""}' % number for number in range(200_000)) + b"]}"
    tracemalloc.start()
    try:
        assert is_fit(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(body)
