"""Tests of tools are long unless what they test has changed. Runs pytest on small folders; reads the checkout."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gate.base import ROOT, changed_files
from tests.gate.changed import is_test, tracked
from tests.gate.imports import conftests, read_graph
from tests.gate.tools import CHANGED_VARIABLE, LONG_VARIABLE, TABLE, Table, Tool, is_below, read_table, unchanged

RunPytest = Callable[..., list[str]]
SMALL = Table((Tool("tests/unit/chaos", ("tests/chaos",)), Tool("tests/e2e/test_x.py", ("devcluster",))), ("locks",))
READ = read_table(TABLE.read_text())


@pytest.mark.parametrize(
    ("changed", "long"),
    [
        ([], ["tests/unit/chaos", "tests/e2e/test_x.py"]),
        (["README.md", "tests/chaosmonkey.py"], ["tests/unit/chaos", "tests/e2e/test_x.py"]),
        (["tests/chaos/run.py"], ["tests/e2e/test_x.py"]),
        (["tests/unit/chaos/test_a.py"], ["tests/e2e/test_x.py"]),
        (["tests/e2e/test_x.py"], ["tests/unit/chaos"]),
        (["locks/dev.lock"], []),
        (None, []),
    ],
)
def test_tests_of_a_tool_are_long_unless_what_they_test_or_they_themselves_changed(
    changed: list[str] | None, long: list[str]
) -> None:
    assert unchanged(SMALL, changed) == long


def test_what_the_table_names_is_there() -> None:
    files = tracked()
    places = [*READ.everywhere, *(place for tool in READ.tools for place in (tool.tests, *tool.sources))]
    assert [place for place in places if not any(is_below(file, [place]) for file in files)] == []
    assert [tool.tests for tool in READ.tools if not any(is_test(f) and is_below(f, [tool.tests]) for f in files)] == []


def test_the_table_names_whatever_these_tests_import() -> None:
    files = tracked()
    needs = read_graph(ROOT, files)
    unnamed = {
        test: missing
        for tool in READ.tools
        for test in files
        if is_test(test) and is_below(test, [tool.tests])
        if (
            missing := [
                needed
                for needed in needs[test] - set(conftests(test, frozenset(files)))
                if not is_below(needed, (tool.tests, *tool.sources, *READ.everywhere))
                and not needed.endswith("/__init__.py")
            ]
        )
    }
    assert unnamed == {}


@pytest.fixture
def run_pytest(tmp_path: Path) -> RunPytest:
    """Return what runs pytest on two tests, one of them of a tool, and returns which of them ran."""
    plugin = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.gate import tools
tools.ROOT = Path({str(tmp_path)!r})
tools.long_tests = lambda: {{long}}
from tests.gate.tools import pytest_collection_modifyitems, pytest_configure
"""

    def run(long: list[str], *arguments: str, changed: list[str] | None = None) -> list[str]:
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts=--import-mode=importlib\nmarkers=\n  long: long\n")
        (tmp_path / "conftest.py").write_text(plugin.replace("{long}", repr(long)))
        for name in ("tool", "other"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "test_it.py").write_text(f"def test_{name}() -> None:\n    pass\n")
        environment = {**os.environ, CHANGED_VARIABLE: json.dumps(changed or [])}
        # Of another run: the process that a person starts decides for itself.
        environment[LONG_VARIABLE] = json.dumps(["other"])
        command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *arguments, str(tmp_path)]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode in (0, 5), result.stdout + result.stderr
        return sorted(line.rpartition("::")[2] for line in result.stdout.splitlines() if line.startswith("PASSED"))

    return run


@pytest.mark.parametrize("workers", [(), ("--numprocesses", "2")], ids=["one process", "workers"])
def test_the_plugin_marks_before_pytest_leaves_out(run_pytest: RunPytest, workers: tuple[str, ...]) -> None:
    assert run_pytest(["tool"], *workers, "-m", "not long") == ["test_other"]


def test_nothing_is_left_out_unless_somebody_asks_for_it_and_a_changed_file_runs_whole(run_pytest: RunPytest) -> None:
    assert run_pytest(["tool"]) == ["test_other", "test_tool"]
    changed = ["tool/test_it.py"]
    assert run_pytest(["tool", "other"], "-m", "not long or changed", changed=changed) == ["test_tool"]


def test_this_checkout_can_be_compared_with_its_own_head() -> None:
    assert isinstance(changed_files("HEAD"), list)
