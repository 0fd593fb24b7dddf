"""The record of durations, and a run held against it."""

import json
from pathlib import Path

import pytest

from tests.gate import junit
from tests.gate.durations import RECORD, Durations, files, not_run, renewed, slower
from tests.gate.tiers import EVERYTHING, GATE

ROOT = Path(__file__).parents[3]


def test_the_committed_record_names_every_file_of_tests_and_no_other() -> None:
    record = Durations.load()
    missing, gone = sorted(set(files()) - set(record.gate)), sorted(set(record.gate) - set(files()))
    assert (missing, gone) == ([], []), (
        "tests/durations.json, gate: add a line for each of the first list, with its seconds, and remove the second; "
        "`make durations` does so after a whole `make test`"
    )


def test_a_record_that_was_written_is_read_again(tmp_path: Path) -> None:
    record = Durations("a machine", {"unit": 5.0}, {"tests/unit/test_a.py": 1.5}, {"tests/unit/test_a.py": 9.0})
    record.save(tmp_path / "durations.json")
    assert Durations.load(tmp_path / "durations.json") == record


@pytest.mark.parametrize("text", ["", "[]", '{"gat": {}}', "null"])
def test_what_is_no_record_is_refused_with_a_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "durations.json").write_text(text)
    with pytest.raises(ValueError, match="take it from version control"):
        Durations.load(tmp_path / "durations.json")


def test_renewing_forgets_files_that_are_gone_and_keeps_what_did_not_run() -> None:
    old = Durations("m", {"unit": 5.0}, {"a": 1.0, "b": 2.0, "gone": 3.0}, {"a": 10.0, "gone": 30.0})
    new = renewed(old, {"a": 1.54, "new": 4.0}, GATE, ["a", "b", "new"])
    assert new == Durations("m", {"unit": 5.0}, {"a": 1.5, "b": 2.0, "new": 4.0}, {"a": 10.0})


def test_a_file_that_did_not_run_although_its_tier_ran_whole_has_only_long_tests() -> None:
    old = Durations("", {}, {"tests/unit/a.py": 3.0, "tests/e2e/b.py": 4.0}, {})
    new = renewed(old, {}, GATE, list(old.gate), ["unit"])
    assert new.gate == {"tests/unit/a.py": 0.0, "tests/e2e/b.py": 4.0}


def test_a_run_of_everything_renews_what_everything_takes() -> None:
    new = renewed(Durations("", {}, {"a": 1.0}, {}), {"a": 7.0}, EVERYTHING, ["a"])
    assert (new.gate, new.whole) == ({"a": 1.0}, {"a": 7.0})


def test_a_file_of_which_no_test_ran_is_found_unless_all_its_tests_are_long() -> None:
    record = Durations("", {}, {"tests/unit/ran.py": 1.0, "tests/unit/lost.py": 2.0, "tests/unit/long.py": 0.0}, {})
    assert not_run(record, {"tests/unit/ran.py": 1.0}, ["tests/unit"]) == ["tests/unit/lost.py"]
    assert not_run(record, {}, ["tests/e2e"]) == []


def test_a_file_that_took_much_longer_is_named_and_noise_is_not() -> None:
    record = Durations("", {}, {"slow": 20.0, "noisy": 100.0, "short": 1.0}, {})
    assert slower(record, {"slow": 31.0, "noisy": 140.0, "short": 15.0}) == ["slow: 31 s, recorded 20 s"]


REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="4">
<testcase classname="tests.unit.test_a" name="test_one[x-1]" file="tests/unit/test_a.py" line="3" time="0.25"/>
<testcase classname="tests.unit.test_a" name="test_two" file="tests/unit/test_a.py" time="0.5">
<failure message="&#10;assert 1 == 2&#10; +  where">no</failure></testcase>
<testcase classname="tests.unit.test_b.TestMachine" name="test_three" time="1"><error>no</error></testcase>
<testcase classname="tests.unit.test_b" name="test_four" file="tests/unit/test_b.py" time="2"><skipped/></testcase>
</testsuite></testsuites>
"""


def test_a_report_says_of_each_test_its_file_how_it_ended_and_how_long_it_took(tmp_path: Path) -> None:
    (tmp_path / "unit.xml").write_text(REPORT)
    cases = junit.read(tmp_path / "unit.xml")
    assert cases[0] == junit.Case("tests/unit/test_a.py", "test_one[x-1]", junit.PASSED, 0.25, "tests.unit.test_a")
    assert [case.outcome for case in cases] == [junit.PASSED, junit.FAILED, junit.FAILED, junit.SKIPPED]
    assert [case.message for case in cases] == ["", "assert 1 == 2", "", ""]
    assert junit.by_file(cases) == {"tests/unit/test_a.py": 0.75, "tests/unit/test_b.py": 3.0}


def test_the_committed_record_is_sorted_so_that_a_change_is_a_line() -> None:
    text = RECORD.read_text()
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"
