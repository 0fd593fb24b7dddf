"""The list of promises fits the tests, and a run is read as what it showed. Runs pytest on a small folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.promises import (
    BROKEN,
    KEPT,
    LIST,
    UNREADABLE,
    Promise,
    TestId,
    broken,
    check,
    complaints,
    main,
    read_promises,
    read_reports,
)

TESTS = """
import pytest

CASES = [pytest.param("one", marks=pytest.mark.long), pytest.param("two", marks=[pytest.mark.long])]


def test_short(): ...


@pytest.mark.long
def test_long(): ...


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_long(case): ...


@pytest.mark.parametrize("case", ["short", pytest.param("slow", marks=pytest.mark.long)])
def test_some(case): ...


@pytest.fixture(params=["kafka", pytest.param("storage", marks=pytest.mark.long)])
def scene(request): ...


async def test_by_fixture(scene): ...


class TestShort:
    def test_it(self): ...


@pytest.mark.long
class TestLong:
    def test_it(self): ...


class TestMarked:
    pytestmark = pytest.mark.long

    def test_it(self): ...
"""
MARKED = "pytestmark = [pytest.mark.timeout(1), pytest.mark.long]"
FILE = "tests/integration/test_a.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("checkout")
    for name, text in {
        FILE: TESTS,
        "tests/unit/test_u.py": "def test_u(): ...\n",
        "tests/e2e/test_m.py": f"import pytest\n{MARKED}\n\ndef test_m(): ...\n",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def test_the_list_of_this_checkout_names_what_there_is_and_something_short_for_each() -> None:
    promises = read_promises(LIST.read_text())
    assert complaints(promises) == []
    assert len({promise.sentence for promise in promises}) == len(promises) >= 30


@pytest.mark.parametrize(
    "test",
    [
        f"{FILE}::test_short",
        f"{FILE}::test_some",
        f"{FILE}::test_some[short]",
        f"{FILE}::test_by_fixture[kafka]",
        f"{FILE}::TestShort::test_it",
    ],
)
def test_one_that_is_not_long_is_enough(root: Path, test: str) -> None:
    assert complaints([Promise("p", "It is.", (f"{FILE}::test_long", test))], root) == []


@pytest.mark.parametrize(
    "test",
    [
        f"{FILE}::test_long",
        f"{FILE}::test_every_case_is_long",
        f"{FILE}::test_some[slow]",
        f"{FILE}::test_by_fixture[storage]",
        f"{FILE}::TestLong::test_it",
        f"{FILE}::TestMarked::test_it",
        "tests/e2e/test_m.py::test_m",
    ],
)
def test_long_ones_alone_are_not(root: Path, test: str) -> None:
    assert complaints([Promise("p", "It is.", (test,))], root) == [
        "p: has no test that is not long, so `make test` would not prove it."
    ]


@pytest.mark.parametrize(
    ("test", "complaint"),
    [
        (f"{FILE}::test_gone", "does not exist"),
        (f"{FILE}::TestShort::test_gone", "does not exist"),
        (f"{FILE}::test_some[gone]", "the cases are short, slow"),
        ("tests/integration/test_gone.py::test_it", "test_gone.py does not exist"),
        ("tests/unit/test_u.py::test_u", "is not in tests/integration/"),
        (FILE, "is no test's id"),
        (f"{FILE}::test_some[short", "is no test's id"),
    ],
)
def test_what_is_not_there_is_named(root: Path, test: str, complaint: str) -> None:
    (found,) = complaints([Promise("p", "It is.", (f"{FILE}::test_short", test))], root)
    assert found.startswith("p: ")
    assert complaint in found


def test_a_test_is_named_once_and_a_promise_is_a_sentence(root: Path) -> None:
    test = f"{FILE}::test_short"
    assert complaints([Promise("p", "words", (test, test))], root) == [
        "p: names a test twice.",
        "p: its promise is no sentence.",
    ]


RAN = """
import pytest


def test_passed(): ...


def test_failed():
    assert False


def test_skipped():
    pytest.skip("why")


@pytest.fixture
def broken_end():
    yield
    raise RuntimeError


def test_broken_end(broken_end): ...


@pytest.mark.long
def test_left_out(): ...


@pytest.mark.parametrize("case", ["a::b[c]", "a.b/c"])
def test_cases(case):
    assert case != "a.b/c"


class TestInside:
    @pytest.mark.parametrize("case", [1])
    def test_passed(self, case): ...
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real JUnit files, of a run in workers with our way of importing."""
    made = tmp_path_factory.mktemp("run")
    (made / "pytest.ini").write_text("[pytest]\naddopts=--import-mode=importlib\nmarkers=\n  long: long\n")
    (made / "tests/e2e/deep").mkdir(parents=True)
    (made / "tests/e2e/deep/test_it.py").write_text(RAN)
    command = [sys.executable, "-m", "pytest", "--numprocesses", "2", "-m", "not long", "--junitxml=reports/e2e.xml"]
    run = subprocess.run([*command, "tests"], cwd=made, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    return made / "reports"


PLACE = "tests/e2e/deep/test_it.py::"
PROVING = ("test_passed", "test_cases", "test_cases[a::b[c]]", "TestInside::test_passed")
NOTHING = ("test_failed", "test_skipped", "test_broken_end", "test_left_out", "test_cases[a.b/c]", "test_cases[d]")


def test_only_what_ran_and_passed_proves_a_promise(reports: Path) -> None:
    promises = [Promise(name, "It is.", (PLACE + name,)) for name in (*PROVING, *NOTHING)]
    ran = list(read_reports(reports))
    assert [promise.name for promise in broken(promises, ran)] == list(NOTHING)
    assert broken([Promise("p", "It is.", (PLACE + "test_failed", PLACE + "test_passed"))], ran) == []


def test_a_name_that_begins_like_another_one_is_another_one() -> None:
    test = TestId.read("tests/e2e/test_it.py::test_a")
    assert (test.junit_class, test.is_case("test_a[x]"), test.is_case("test_ab")) == ("tests.e2e.test_it", True, False)


def test_the_command_says_how_many_were_kept_or_which_were_not(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "promises.toml"
    entry = '[{}]\npromise = "It is."\ntests = ["{}{}"]\n'
    listed.write_text(entry.format("one", PLACE, "test_passed"))
    assert check(reports, listed) == (KEPT, ["promises: 1 kept"])
    listed.write_text(entry.format("one", PLACE, "test_passed") + entry.format("two", PLACE, "test_skipped"))
    code, lines = check(reports, listed)
    assert (code, lines[1:]) == (BROKEN, ["  two: It is.", f"    {PLACE}test_skipped"])
    assert main([str(tmp_path)]) == UNREADABLE
    assert "no JUnit file" in capsys.readouterr().err
