"""Tests beside busy loops: which run, what is printed, and that no loop stays. Starts processes."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.gate import noisy
from tests.gate.changed import Selection
from tests.gate.noisy import Round, by_tier, noise, results, run_rounds, summarize


def test_the_loops_are_ended_with_the_run() -> None:
    with noise(2) as loops:
        assert [os.waitpid(loop, os.WNOHANG) for loop in loops] == [(0, 0), (0, 0)]
    for loop in loops:
        with pytest.raises(ProcessLookupError):
            os.kill(loop, 0)


def test_a_loop_ends_by_itself_when_nobody_ends_it() -> None:
    assert str(noisy.BUSY_SECONDS) in noisy.LOOP
    short = noisy.LOOP.replace(str(noisy.BUSY_SECONDS), "0.1")
    assert subprocess.run([sys.executable, "-c", short], check=False, timeout=600).returncode == 0


def test_named_tests_are_run_by_tier_and_changed_ones_otherwise() -> None:
    named = ["tests/e2e/test_a.py::test_x[1]", "tests/unit/gate", "tests/property/test_b.py"]
    assert by_tier(Selection(), named) == {"unit": named[1:], "e2e": named[:1]}
    selection = Selection({"tests/integration/test_c.py": "why"})
    assert by_tier(selection, []) == {"integration": ["tests/integration/test_c.py"]}
    assert by_tier(Selection(everything="why"), []) == {"unit": [], "integration": [], "e2e": []}
    with pytest.raises(ValueError, match=r"README\.md"):
        by_tier(Selection(), ["README.md"])


def test_every_round_runs_whatever_failed_and_one_failure_is_enough() -> None:
    asked: list[tuple[str, int]] = []

    def run(tier: str, number: int, tests: Sequence[str], changed: Sequence[str]) -> Round:
        asked.append((tier, number))
        failed = ("tests.unit.test_a::test_b",) if (tier, number) == ("unit", 2) else ()
        return Round(tier, number, 7, failed, 90.0, 1 if failed else 0)

    rounds = list(run_rounds({"unit": ["a"], "e2e": ["b"]}, ["a"], run))
    assert asked == [("unit", 1), ("e2e", 1), ("unit", 2), ("e2e", 2), ("unit", 3), ("e2e", 3)]
    table, summary = summarize(rounds, {"loops": 2})
    assert table[1].split() == ["1", "unit", "7", "0", "1.5"]
    assert table[-1] == "failed 1 times: tests.unit.test_a::test_b"
    assert (summary["passed"], summary["loops"]) == (False, 2)
    assert len(json.loads(json.dumps(summary))["rounds"]) == 6
    assert summarize(rounds[:1], {})[1]["passed"] is True
    assert summarize([], {})[1]["passed"] is False


def test_a_run_that_ended_without_a_report_did_not_pass(tmp_path: Path) -> None:
    assert results(tmp_path / "none.xml") == (0, ())
    assert not Round("unit", 1, 0, (), 1.0, 3).passed
    (tmp_path / "r.xml").write_text(
        '<testsuites><testsuite><testcase classname="a.test_b" name="c"><error/></testcase>'
        '<testcase classname="a.test_b" name="d"/></testsuite></testsuites>'
    )
    assert results(tmp_path / "r.xml") == (2, ("a/test_b.py::c",))
