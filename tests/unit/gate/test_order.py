"""The order of files whose tests share servers."""

from pathlib import Path
from typing import Any

import pytest

from tests.gate import order
from tests.gate.durations import ROOT, Durations


class Item:
    """What the order knows of a test."""

    def __init__(self, file: str, name: str) -> None:
        self.path, self.name = ROOT / file, name


@pytest.fixture(autouse=True)
def _record(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Durations("", {}, {"tests/e2e/short.py": 5.0, "tests/e2e/long.py": 50.0})
    monkeypatch.setattr(Durations, "load", lambda: known)


def sort(*items: Item) -> list[str]:
    them: list[Any] = list(items)
    order.longest_first(them)
    return [f"{Path(item.path).stem}.{item.name}" for item in them]


def test_the_longest_file_comes_first_and_in_a_file_the_order_stays() -> None:
    items = [Item("tests/e2e/short.py", "b"), Item("tests/e2e/long.py", "z"), Item("tests/e2e/long.py", "a")]
    assert sort(*items) == ["long.z", "long.a", "short.b"]


def test_files_of_the_same_length_are_not_mixed() -> None:
    items = [Item("tests/e2e/one.py", "a"), Item("tests/e2e/two.py", "a"), Item("tests/e2e/one.py", "b")]
    assert sort(*items) == ["one.a", "one.b", "two.a"]
