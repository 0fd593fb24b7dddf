"""What a run prints last."""

import io

from rich.console import Console

from tests.gate import junit, report
from tests.gate.run import INTERRUPTED, NOT_RUN

PASSED = [junit.Case("tests/unit/test_a.py", f"test_{n}", junit.PASSED, 1.0) for n in range(3)]
BROKEN = [*PASSED, junit.Case("tests/unit/test_a.py", "test_x", junit.FAILED, 1.0)]


def test_the_table_has_a_line_for_each_tier_and_the_whole_run_below() -> None:
    lines = [report.Line("check", 0, [], 1.04), report.Line("unit", 0, PASSED, 4.26, 6.0)]
    shown = io.StringIO()
    Console(file=shown, width=100).print(report.table(lines, 5.0, "make test"))
    text = shown.getvalue()
    assert [row for row in ("make test", "check", "4.3", "passed", "5.0") if row not in text] == []


def test_a_line_says_how_its_step_ended() -> None:
    codes = {0: "passed", 1: "FAILED", -9: "FAILED", NOT_RUN: "not run", INTERRUPTED: "interrupted"}
    assert {code: report.Line("unit", code, [], 1.0).result for code in codes} == codes


def test_a_tier_over_its_budget_is_named_and_one_without_a_budget_is_not() -> None:
    lines = [
        report.Line("unit", 0, PASSED, 7.0, 6.0),
        report.Line("e2e", 0, PASSED, 9.0),
        report.Line("i", 0, [], 1.0, 2.0),
    ]
    assert report.over_budget(lines) == ["unit took 7.0 minutes; its budget is 6."]


def test_the_summary_says_of_each_tier_its_tests_and_minutes() -> None:
    lines = [report.Line("unit", 1, BROKEN, 4.26, 6.0), report.Line("e2e", NOT_RUN, [], 0.0)]
    assert report.summary(lines, 5.04, {"commit": "abc"}) == {
        "commit": "abc",
        "passed": False,
        "minutes": 5.0,
        "tiers": {
            "unit": {"minutes": 4.3, "tests": 4, "failed": 1, "result": "FAILED"},
            "e2e": {"minutes": 0.0, "tests": 0, "failed": 0, "result": "not run"},
        },
    }


def test_each_test_that_failed_is_named_with_what_it_says_and_no_other() -> None:
    failed = junit.Case("tests/unit/test_a.py", "test_x", junit.FAILED, 1.0, message="AssertionError: " + "x" * 1000)
    (line,) = report.failures([*PASSED, failed])
    assert line.startswith("failed: tests/unit/test_a.py::test_x: AssertionError: xxx")
    assert len(line) < 400


def test_of_many_that_failed_the_first_are_named_and_the_others_counted() -> None:
    failed = [junit.Case("tests/unit/test_a.py", f"test_{n}", junit.FAILED, 1.0) for n in range(25)]
    *named, last = report.failures(failed)
    assert (len(named), last) == (20, "failed: 5 more; the log names them")
