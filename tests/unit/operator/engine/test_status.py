"""The merge patch between two statuses. Pure."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.engine.rules.status_patch import merge_difference

leaves = st.one_of(st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))
objects = st.recursive(
    st.dictionaries(st.sampled_from("abc"), leaves, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.one_of(leaves, inner), max_size=3),
    max_leaves=6,
)


def merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return what the API server makes of a JSON merge patch (RFC 7386)."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = merge(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result


@given(objects, objects)
def test_the_patch_turns_the_one_into_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merge(old, merge_difference(old, new)) == new


@given(objects)
def test_equal_statuses_need_no_patch(status: dict[str, Any]) -> None:
    assert merge_difference(status, status) == {}


def test_a_field_that_is_gone_is_named() -> None:
    assert merge_difference({"lastExit": {"reason": "x"}, "epoch": 1}, {"epoch": 2}) == {"lastExit": None, "epoch": 2}
