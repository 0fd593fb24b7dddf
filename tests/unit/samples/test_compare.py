"""The comparer tells missing, wrong, unexpected and repeated decisions apart."""

from typing import Any

from devcluster.demo.compare import compare


def decision(name: str, value: int = 1) -> dict[str, Any]:
    return {"id": name, "decision": value}


EXPECTED = {name: decision(name) for name in ("a", "b", "c")}


def test_the_same_decisions_in_any_order_agree() -> None:
    comparison = compare(EXPECTED, [decision("c"), decision("a"), decision("b")])
    assert comparison.ok
    assert (comparison.correct, comparison.duplicates) == (3, 0)


def test_repeats_are_counted_and_do_no_harm() -> None:
    comparison = compare(EXPECTED, [*EXPECTED.values(), decision("a"), decision("a")])
    assert comparison.ok
    assert comparison.duplicates == 2


def test_a_missing_decision_is_named() -> None:
    comparison = compare(EXPECTED, [decision("a"), decision("b")])
    assert not comparison.ok
    assert comparison.missing == ("c",)
    assert "missing: c" in comparison.report()


def test_a_repeat_that_says_something_else_is_wrong() -> None:
    comparison = compare(EXPECTED, [*EXPECTED.values(), decision("b", 0)])
    assert not comparison.ok
    assert comparison.wrong == ("b",)
    assert comparison.correct == 2


def test_a_decision_that_is_not_due_is_unexpected() -> None:
    comparison = compare(EXPECTED, [*EXPECTED.values(), decision("z")])
    assert not comparison.ok
    assert comparison.unexpected == ("z",)


def test_nothing_at_all_is_not_taken_for_success() -> None:
    comparison = compare(EXPECTED, [])
    assert not comparison.ok
    assert len(comparison.missing) == 3
