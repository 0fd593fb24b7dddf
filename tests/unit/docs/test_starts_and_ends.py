"""The table of why pods do not start or end: each reason has a row, and what it names is there."""

import ast
from pathlib import Path

import msgspec
import pytest

from docs import generate_starts_and_ends as generator
from tests.gate.promises import look_up
from tidegate_spark.contract.reasons import Reason

ROOT = Path(__file__).parents[3]
TABLES = generator.read(generator.DATA.read_text())
ROWS = [row for rows in TABLES.values() for row in rows]
ELSEWHERE = sorted({test for row in ROWS for test in row.elsewhere})


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_reason_for_which_a_pod_does_not_start_or_ends_has_one_row() -> None:
    named = [row.reason for row in ROWS]
    assert sorted(named) == sorted(generator.needed()), (
        "docs/starts-and-ends.toml has one row for each reason about pods or ends: add "
        f"{sorted(generator.needed() - set(named))}, remove {sorted(set(named) - generator.needed())}"
    )
    assert {"ImagePullFailed", "OutOfMemory", "InvalidSpec"} <= generator.needed()
    assert Reason.RUNNING.value not in generator.needed()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.reason)
def test_what_produces_it_on_a_cluster_is_a_test_there_and_asserts_what_a_user_reads(row: generator.Row) -> None:
    assert row.cluster.startswith("tests/e2e/")
    assert look_up(row.cluster)[0] == ""
    text = (ROOT / row.cluster.partition("::")[0]).read_text()
    assert [message for message in row.reads if message not in text] == [], (
        f"{row.cluster} does not assert these, which docs/starts-and-ends.toml says that a user reads"
    )
    assert f'"{row.reason}"' in text or f"{row.reason}: " in text


@pytest.mark.parametrize("test", ELSEWHERE)
def test_what_has_it_without_a_cluster_is_a_test(test: str) -> None:
    file, _, function = test.partition("::")
    assert not file.startswith("tests/e2e/")
    assert function in functions(ROOT / file)


def test_a_reason_without_a_test_on_a_cluster_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="cluster"):
        generator.read('[[start]]\nreason = "ImagePulling"\nelsewhere = ["tests/unit/a.py::test_a"]\n')


def test_a_reason_without_what_a_user_reads_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="reads"):
        generator.read('[[start]]\nreason = "ImagePulling"\ncluster = "tests/e2e/a.py::test_a"\n')


def test_a_reason_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="Nonsense is no reason"):
        generator.read('[[start]]\nreason = "Nonsense"\ncluster = "tests/e2e/a.py::test_a"\nreads = ["a"]\n')


def test_the_page_is_up_to_date() -> None:
    assert generator.main(["--check"]) == 0
