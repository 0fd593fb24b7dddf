"""Each course that some test has can be run by its name, with more seeds than the test has."""

from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from tests.scenario.courses import COURSES, NAMES, load

WITHOUT = {"test_executors_that_end", "test_long_configuration", "test_pods_that_do_not_start"}
"""What happens in these is one thing, at one moment: other seeds have nothing to add."""


@pytest.mark.parametrize("name", NAMES)
def test_it_is_found(name: str) -> None:
    assert iscoroutinefunction(load(name))


def test_each_file_of_tests_that_has_one_is_named() -> None:
    files = {path.stem for path in Path(__file__).parent.glob("test_*.py") if "run_course" in path.read_text()}
    assert files - {module for module, _ in COURSES.values()} - {Path(__file__).stem} == WITHOUT
