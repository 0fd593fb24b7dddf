"""The order of files whose tests share servers: the longest first, by the committed record. Reads that record.

A long file that came last would keep one worker busy while the other has no more.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gate.durations import ROOT, Durations


def longest_first(items: list[pytest.Item], *, last: Callable[[pytest.Item], bool] = lambda _: False) -> None:
    """Sort tests by what their file takes; in a file their order stays.

    Args:
        items: the collected tests, sorted in place.
        last: says of a test that its file comes after those of which it says it of none.
    """
    record = Durations.load()
    at_the_end = {item.path for item in items if last(item)}

    def rank(item: pytest.Item) -> tuple[bool, float, Path]:
        file = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else str(item.path)
        return item.path in at_the_end, -record.seconds(file), item.path

    items.sort(key=rank)
