"""All tests in slices: each file in one of them, and none much longer than another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.slices import Slice, divide, files_of, has_own_slice, own_slice

FILES = st.dictionaries(st.text("abc", min_size=1), st.floats(0, 1000), max_size=40)


@given(FILES, st.integers(1, 6))
def test_each_file_is_in_one_slice(seconds: dict[str, float], count: int) -> None:
    assert sorted(file for part in divide(seconds, count) for file in part) == sorted(seconds)


@given(FILES, st.integers(1, 6))
def test_no_slice_is_longer_than_another_by_more_than_one_file(seconds: dict[str, float], count: int) -> None:
    lengths = [sum(seconds[file] for file in part) for part in divide(seconds, count)]
    assert max(lengths) - min(lengths) <= max(seconds.values(), default=0) + 1e-6


def test_each_tier_is_divided_by_itself() -> None:
    seconds = {"tests/unit/a.py": 5.0, "tests/unit/b.py": 4.0, "tests/e2e/c.py": 100.0, "tests/e2e/d.py": 90.0}
    folders = {"unit": ("tests/unit",), "e2e": ("tests/e2e",)}
    assert files_of(Slice(1, 2), seconds, folders) == {"unit": ["tests/unit/a.py"], "e2e": ["tests/e2e/c.py"]}
    assert files_of(Slice(2, 2), seconds, folders) == {"unit": ["tests/unit/b.py"], "e2e": ["tests/e2e/d.py"]}


def test_the_compatibility_suite_has_a_slice_of_its_own_in_two_tiers() -> None:
    own = ["tests/compatibility/test_a.py", "tests/e2e/test_compatibility.py"]
    folders = {
        "unit": ("tests/unit",),
        "integration": ("tests/integration", "tests/compatibility"),
        "e2e": ("tests/e2e",),
    }
    assert own_slice([*own, "tests/e2e/test_b.py"], folders) == {"integration": own[:1], "e2e": own[1:]}
    assert [file for file in (*own, "tests/e2e/test_b.py") if not has_own_slice(file)] == ["tests/e2e/test_b.py"]


@pytest.mark.parametrize("text", ["", "3", "0/3", "4/3", "1/0", "a/b", "1/3/5", "-1/3"])
def test_what_is_no_slice_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="use k/n with 1 <= k <= n, such as 1/3"):
        Slice.parse(text)
