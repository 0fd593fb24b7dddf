"""Reads pytest's JUnit files: which tests of which file ran, for how long, and how they ended. Reads files."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Case:
    """One test that ran.

    Attributes:
        file: path of its file, relative to the checkout.
        name: the function's name, with parameters in brackets.
        outcome: PASSED, FAILED (an error of a fixture too) or SKIPPED.
        seconds: of set-up, test and clean-up together.
        place: its module, and its class if it has one, joined by dots.
        message: the first line of what a failed test says, empty for all others.
    """

    file: str
    name: str
    outcome: str
    seconds: float
    place: str = ""
    message: str = ""


def read(report: Path) -> list[Case]:
    """Return the tests of a JUnit file that pytest wrote; none if there is no file."""
    if not report.is_file():
        return []
    return [_case(each) for each in ElementTree.parse(report).getroot().iter("testcase")]


def _case(element: ElementTree.Element) -> Case:
    kinds = {child.tag for child in element}
    outcome = FAILED if kinds & {"failure", "error"} else SKIPPED if "skipped" in kinds else PASSED
    place, seconds = element.get("classname", ""), float(element.get("time", "0"))
    return Case(_file(place), element.get("name", ""), outcome, seconds, place, _message(element))


def _message(element: ElementTree.Element) -> str:
    """Return the first line of the failure's message; of an error while tests are collected it is the error's."""
    said = (child.get("message", "") for child in element if child.tag in {"failure", "error"})
    return next((line.strip() for message in said for line in message.splitlines() if line.strip()), "")


def _file(place: str) -> str:
    """Return the file of ``tests.unit.test_a`` or ``tests.unit.test_a.TestClass``.

    The report's own attribute names where a test's code is, which for a state machine is in a library.
    """
    parts = place.split(".")
    while len(parts) > 1 and not parts[-1].startswith("test_"):
        parts.pop()
    return "/".join(parts) + ".py"


def by_file(cases: Iterable[Case]) -> dict[str, float]:
    """Return the seconds of each file."""
    seconds: dict[str, float] = defaultdict(float)
    for case in cases:
        seconds[case.file] += case.seconds
    return dict(seconds)
