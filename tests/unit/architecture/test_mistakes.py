"""Planted mistakes: what is recorded is tried first, a search comes after, and an old record does not go unnoticed."""

import tomllib
import warnings
from pathlib import Path

import pytest

from tidegate_testing.mistakes import Course, Planted

FILE, NAME = "tests/test_sums.py", "one too many"


class Program:
    """Does wrong in the courses that are named, once the mistake is planted."""

    def __init__(self, *wrong: Course, always: bool = False) -> None:
        self.wrong, self.planted = wrong, always
        self.searches = 0

    def plant(self) -> None:
        self.planted = True

    def shows(self, course: Course) -> bool:
        return self.planted and course in self.wrong

    def search(self) -> Course | None:
        self.searches += 1
        return self.wrong[0] if self.wrong else None


@pytest.fixture(autouse=True)
def nobody_asks_for_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_MISTAKES", raising=False)


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    known = Planted(FILE, (NAME, "another"), record=tmp_path / "mistakes.toml")
    known.write(NAME, 3)
    return known


def test_what_is_recorded_is_enough(planted: Planted) -> None:
    program = Program(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        planted.assert_noticed(NAME, program.plant, program.shows, program.search)
    assert program.searches == 0


def test_where_the_record_is_old_a_search_finds_the_mistake_and_says_how_to_record_it(planted: Planted) -> None:
    program = Program(5, 8)
    with pytest.warns(match=f"{FILE}: {NAME}: shows in 5, record it with `make mistakes`"):
        planted.assert_noticed(NAME, program.plant, program.shows, program.search)
    assert planted.recorded() == {NAME: 3}


def test_an_old_record_is_a_failure_of_the_test_of_records(planted: Planted) -> None:
    program = Program(5)
    with pytest.raises(AssertionError, match="no longer shows in 3: one too many; `make mistakes` finds another"):
        planted.assert_recorded(NAME, program.plant, program.shows)
    planted.assert_recorded(NAME, program.plant, Program(3, always=True).shows)


def test_so_is_no_record(planted: Planted) -> None:
    with pytest.raises(AssertionError, match="no course is recorded for: another; `make mistakes` finds one"):
        planted.assert_recorded("another", Program(3).plant, Program(3).shows)


def test_a_mistake_that_nobody_notices_is_a_failure(planted: Planted) -> None:
    program = Program()
    with pytest.raises(AssertionError, match="nobody notices: one too many"):
        planted.assert_noticed(NAME, program.plant, program.shows, program.search)


def test_what_shows_without_the_mistake_proves_nothing(planted: Planted) -> None:
    program = Program(3, always=True)
    with pytest.raises(AssertionError, match="something is wrong in 3 without a mistake"):
        planted.assert_noticed(NAME, program.plant, program.shows, program.search)


def test_what_is_found_is_recorded_if_the_environment_asks_for_it(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_MISTAKES", "write")
    text = Program('AAE="')
    planted.assert_noticed(NAME, text.plant, text.shows, text.search)
    other = Program(1)
    planted.assert_noticed("another", other.plant, other.shows, other.search)
    assert planted.recorded() == {NAME: 'AAE="', "another": 1}


def test_what_other_files_plant_stays_and_what_nobody_plants_goes(planted: Planted) -> None:
    others = Planted("tests/test_products.py", ("zero",), record=planted.record)
    others.write("zero", 4)
    Planted(FILE, ("another",), record=planted.record).write("another", 2)
    assert tomllib.loads(planted.record.read_text()) == {"tests/test_products.py": {"zero": 4}, FILE: {"another": 2}}
