"""The order of files whose tests share servers: the longest first, by the committed record. Reads that record.

A long file that came last would keep one worker busy while the other has no more.
"""

from pathlib import Path

import pytest

from tests.gate.durations import ROOT, Durations


def longest_first(items: list[pytest.Item]) -> None:
    """Sort collected tests in place by what their file takes; in a file their order stays."""
    record = Durations.load()

    def rank(item: pytest.Item) -> tuple[float, Path]:
        file = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else str(item.path)
        return -record.seconds(file), item.path

    items.sort(key=rank)
