"""What golden files are compared with, and how they are written; each of those in the checkout belongs to a test."""

import re
from pathlib import Path

import pytest

from tidegate_testing.golden import FOLDER, assert_golden

TESTS = Path(__file__).parents[2]
POD = {"kind": "Pod", "spec": {"containers": [{"name": "driver", "image": "a:1"}], "config": '{"main": "a.py"}'}}
OTHER = {"kind": "Pod", "spec": {"containers": [{"name": "driver", "image": "b:1"}], "config": '{"main": "b.py"}'}}


@pytest.fixture
def test_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a test that has the pod's golden file, from now on to be compared with."""
    monkeypatch.setenv("TIDEGATE_GOLDEN", "write")
    assert_golden(str(tmp_path / "test_pods.py"), "pod", POD)
    monkeypatch.delenv("TIDEGATE_GOLDEN")
    return str(tmp_path / "test_pods.py")


def test_what_was_written_is_equal_and_has_what_stands_there_as_json_in_lines_of_its_own(
    test_file: str, tmp_path: Path
) -> None:
    assert_golden(test_file, "pod", POD)
    assert (tmp_path / "golden" / "pod.yaml").read_text().splitlines() == [
        "kind: Pod",
        "spec:",
        "  config: !json",
        "    main: a.py",
        "  containers:",
        "  - image: a:1",
        "    name: driver",
    ]


def test_a_difference_is_shown_with_the_command_that_accepts_it(test_file: str) -> None:
    with pytest.raises(AssertionError) as shown:
        assert_golden(test_file, "pod", OTHER)
    lines = str(shown.value).splitlines()
    assert [line for line in lines if line.startswith(("-", "+"))] == [
        "--- golden/pod.yaml",
        "+++ what the test has made",
        "-    main: a.py",
        "+    main: b.py",
        "-  - image: a:1",
        "+  - image: b:1",
    ]
    assert "`make golden`" in lines[-1]


def test_a_text_is_not_the_object_that_it_says(test_file: str) -> None:
    spec = {"containers": [{"name": "driver", "image": "a:1"}], "config": {"main": "a.py"}}
    with pytest.raises(AssertionError, match="!json"):
        assert_golden(test_file, "pod", {"kind": "Pod", "spec": spec})


def test_the_environment_has_it_written_again(test_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_GOLDEN", "write")
    assert_golden(test_file, "pod", OTHER)
    monkeypatch.delenv("TIDEGATE_GOLDEN")
    assert_golden(test_file, "pod", OTHER)


def test_a_file_that_is_missing_is_named_with_the_command_that_writes_it(test_file: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=rf"{tmp_path}/golden/other\.yaml; `make golden` writes it"):
        assert_golden(test_file, "other", POD)
    assert not (tmp_path / "golden" / "other.yaml").exists()


def test_every_golden_file_belongs_to_a_test() -> None:
    used = {
        test.parent / FOLDER / f"{name}.yaml"
        for test in TESTS.rglob("test_*.py")
        for name in re.findall(r'assert_golden\(\s*__file__, "(\w+)"', test.read_text())
    }
    assert used
    assert {file for file in TESTS.rglob(f"{FOLDER}/*") if file.is_file()} == used, (
        "delete the golden files that no test names, and write those that are missing with `make golden`"
    )
