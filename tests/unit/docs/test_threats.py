"""Each threat that the page names has a test that is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "design" / "threats.md"
COLUMNS = 5


def lines() -> list[list[str]]:
    """Return the cells of each line of the page's tables, without their heads."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows if not row.startswith("| who |")]


@pytest.mark.parametrize("cells", lines(), ids=lambda cells: cells[2][:40])
def test_a_threat_says_who_with_which_right_what_happens_and_has_a_test(cells: list[str]) -> None:
    assert len(cells) == COLUMNS
    assert all(cells)
    named = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", cells[-1])
    assert named is not None, cells[-1]
    tree = ast.parse((ROOT / named[1]).read_text())
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert named[2] in functions


def test_the_page_has_threats() -> None:
    assert len(lines()) > 20
