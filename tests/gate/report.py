"""What a run prints last: one table (tier, tests, minutes), what was slower than usual, one JSON line. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from tests.gate import junit
from tests.gate.run import INTERRUPTED, NOT_RUN

_MOST, _LONGEST = 20, 300
"""Failed tests that are named, and characters of what each of them says."""


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        name: the step's name.
        code: its exit code; NOT_RUN or INTERRUPTED.
        cases: the tests that its report names.
        minutes: what it took.
        budget: minutes that it may take; None if it has no budget.
    """

    name: str
    code: int
    cases: Sequence[junit.Case]
    minutes: float
    budget: float | None = None

    @property
    def result(self) -> str:
        """Say how it ended in one word or two."""
        return {0: "passed", NOT_RUN: "not run", INTERRUPTED: "interrupted"}.get(self.code, "FAILED")


def count(cases: Sequence[junit.Case], outcome: str) -> int:
    """Return how many tests ended so."""
    return sum(case.outcome == outcome for case in cases)


def failures(cases: Sequence[junit.Case]) -> list[str]:
    """Return a line for each test that failed, with what it says: a log that was cut off has its end still."""
    failed = [case for case in cases if case.outcome == junit.FAILED]
    lines = [f"failed: {case.file}::{case.name}: {case.message[:_LONGEST]}" for case in failed[:_MOST]]
    return lines if len(failed) <= _MOST else [*lines, f"failed: {len(failed) - _MOST} more; the log names them"]


def table(lines: Sequence[Line], minutes: float, title: str) -> Table:
    """Return the table; its last line is the whole run, whose tiers ran beside each other."""
    made = Table(title=title, title_justify="left", show_footer=True)
    tests, failed = sum(len(line.cases) for line in lines), sum(count(line.cases, junit.FAILED) for line in lines)
    made.add_column("tier", "all")
    made.add_column("tests", str(tests), justify="right")
    made.add_column("failed", str(failed), justify="right")
    made.add_column("minutes", f"{minutes:.1f}", justify="right")
    made.add_column("budget", "", justify="right")
    made.add_column("result", "passed" if all(line.code == 0 for line in lines) else "FAILED")
    for line in lines:
        tested = (str(len(line.cases)), str(count(line.cases, junit.FAILED))) if line.cases else ("", "")
        budget = "" if line.budget is None else f"{line.budget:g}"
        made.add_row(line.name, *tested, f"{line.minutes:.1f}", budget, line.result)
    return made


def over_budget(lines: Sequence[Line]) -> list[str]:
    """Return a sentence for each tier that took longer than its budget: no failure, machines are noisy."""
    over = [line for line in lines if line.budget is not None and line.minutes > line.budget]
    return [f"{line.name} took {line.minutes:.1f} minutes; its budget is {line.budget:g}." for line in over]


def summary(lines: Sequence[Line], minutes: float, facts: Mapping[str, object]) -> dict[str, object]:
    """Return the run as one JSON object: what it was, and for each tier the tests and minutes."""
    tiers = {
        line.name: {
            "minutes": round(line.minutes, 1),
            "tests": len(line.cases),
            "failed": count(line.cases, junit.FAILED),
            "result": line.result,
        }
        for line in lines
    }
    passed = all(line.code == 0 for line in lines)
    return {**facts, "passed": passed, "minutes": round(minutes, 1), "tiers": tiers}
