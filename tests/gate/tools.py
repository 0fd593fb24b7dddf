"""A pytest plugin: tests of tools are long, unless what they test has changed. Used by tests/conftest.py.

Whether it has changed is asked once, by the process that a person starts; workers are told by a variable.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.gate.base import ROOT, UnknownBaseError, changed_files, find_base

TABLE = Path(__file__).with_suffix(".toml")
LONG_VARIABLE = "TIDEGATE_LONG_TOOLS"
"""The tests of tools that are long in this run, as a JSON list of folders and files."""
CHANGED_VARIABLE = "TIDEGATE_CHANGED_TESTS"
"""The test files that have changed themselves, as a JSON list; tests/gate/changed.py runs them whole."""


@dataclass(frozen=True)
class Tool:
    """Tests of a tool, and what they are about: folders and files."""

    tests: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    tools: tuple[Tool, ...]
    everywhere: tuple[str, ...]
    """What belongs to the sources of all."""


def read_table(text: str) -> Table:
    """Read tools.toml."""
    read: dict[str, Any] = tomllib.loads(text)
    tools = tuple(Tool(tool["tests"], tuple(tool["sources"])) for tool in read["tool"])
    return Table(tools, tuple(read["everywhere"]))


def is_below(path: str, places: Iterable[str]) -> bool:
    """Return whether a file is one of these, or in one of these folders."""
    return any(path == place or path.startswith(f"{place}/") for place in places)


def unchanged(table: Table, changed: Sequence[str] | None) -> list[str]:
    """Return the tests of tools of which nothing has changed; None: there is no base, and everything counts."""
    if changed is None:
        return []
    return [
        tool.tests
        for tool in table.tools
        if not any(is_below(path, (tool.tests, *tool.sources, *table.everywhere)) for path in changed)
    ]


def long_tests() -> list[str]:
    """Return the folders and files of tests that are long in this checkout, because what they test is as it was."""
    try:
        base = find_base()
        changed = None if base is None else changed_files(base)
    except UnknownBaseError:
        changed = None
    return unchanged(read_table(TABLE.read_text()), changed)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "changed: its file has changed; `make test-changed` runs it even if it is long")
    if not hasattr(config, "workerinput"):
        os.environ[LONG_VARIABLE] = json.dumps(long_tests())


# Before pytest leaves out what ``-m`` does not ask for.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = json.loads(os.environ.get(LONG_VARIABLE, "[]"))
    changed = json.loads(os.environ.get(CHANGED_VARIABLE, "[]"))
    for item in items:
        path = Path(os.path.relpath(item.path, ROOT)).as_posix()
        if is_below(path, long):
            item.add_marker(pytest.mark.long)
        if path in changed:
            item.add_marker(pytest.mark.changed)
