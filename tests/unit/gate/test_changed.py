"""Which tests run for a change: by imports, by the table, and everything when neither knows. Reads the checkout."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.gate.base import ROOT
from tests.gate.changed import (
    EVERYTHING,
    PRODUCT,
    TABLE,
    Rule,
    Selection,
    Table,
    command,
    describe,
    is_test,
    matches,
    reached,
    read_table,
    reported,
    reverse,
    select,
    tracked,
)
from tests.gate.imports import Needs, read_graph
from tests.gate.tools import is_below

NEEDS = {
    "operator/tidegate/rule.py": frozenset[str](),
    "operator/tidegate/plan.py": frozenset({"operator/tidegate/rule.py"}),
    "tests/support/tidegate_testing/world.py": frozenset({"operator/tidegate/plan.py"}),
    "tests/support/tidegate_testing/unused.py": frozenset(),
    "tests/unit/test_plan.py": frozenset({"operator/tidegate/plan.py"}),
    "tests/unit/test_alone.py": frozenset(),
    "tests/gate/order.py": frozenset(),
    "tests/unit/test_order.py": frozenset({"tests/gate/order.py"}),
    "tests/e2e/conftest.py": frozenset({"tests/gate/order.py", "tests/e2e/scripts/one.py", "tests/e2e/scripts/two.py"}),
    "tests/e2e/test_one.py": frozenset({"tests/e2e/conftest.py", "tests/e2e/scripts/one.py"}),
    "tests/integration/area/test_area.py": frozenset({"tests/support/tidegate_testing/world.py"}),
    "tests/e2e/test_story.py": frozenset(
        {"tests/support/tidegate_testing/world.py", "operator/tidegate/plan.py", "tests/e2e/conftest.py"}
    ),
}
PROGRAMS = ("tests/e2e/scripts/one.py", "tests/e2e/scripts/two.py")
FILES = {
    *NEEDS,
    *PROGRAMS,
    "crds/a.yaml",
    "tests/integration/area/scripts/app.py",
    "strange.xyz",
    "operator/tidegate/data.bin",
}
RULES = (
    Rule(("operator/tidegate/*.py",), ("tests/integration",)),
    Rule(("crds/**",), ("tests/e2e/test_story.py",)),
    Rule(("pyproject.toml",), ("*",)),
)


def chosen(*files: str, always: Sequence[str] = ()) -> Selection:
    return select(files, NEEDS, Table(RULES, tuple(always)), FILES)


def test_a_test_runs_that_imports_what_changed_directly_or_not() -> None:
    assert set(chosen("operator/tidegate/rule.py").of_tier("unit")) == {"tests/unit/test_plan.py"}


def test_tests_with_servers_are_led_to_by_the_table_and_not_by_what_they_import_of_the_product() -> None:
    selection = chosen("operator/tidegate/rule.py")
    assert selection.of_tier("integration") == ["tests/integration/area/test_area.py"]
    assert selection.of_tier("e2e") == []


def test_what_tests_share_is_followed_by_imports_in_every_tier() -> None:
    selection = chosen("tests/support/tidegate_testing/world.py")
    assert set(selection.reasons) == {"tests/integration/area/test_area.py", "tests/e2e/test_story.py"}


def test_what_nobody_imports_runs_nothing() -> None:
    selection = chosen("tests/support/tidegate_testing/unused.py")
    assert (selection.reasons, selection.everything) == ({}, "")


def test_a_file_that_is_no_module_is_looked_up_in_the_table() -> None:
    assert set(chosen("crds/a.yaml").reasons) == {"tests/e2e/test_story.py"}


def test_a_changed_test_runs_whole_and_so_do_those_beside_a_changed_script() -> None:
    selection = chosen("tests/unit/test_alone.py", "tests/integration/area/scripts/app.py")
    assert selection.changed == {"tests/unit/test_alone.py", "tests/integration/area/test_area.py"}
    assert set(selection.reasons) == selection.changed
    assert describe(chosen("crds/a.yaml"))[1:] == ["  tests/e2e/test_story.py  <-  crds/a.yaml (table)"]


def test_a_program_belongs_to_the_tests_that_name_it_and_to_all_beside_it_if_none_does() -> None:
    named, unnamed = PROGRAMS
    assert set(chosen(named).reasons) == chosen(named).changed == {"tests/e2e/test_one.py"}
    assert set(chosen(unnamed).reasons) == {"tests/e2e/test_one.py", "tests/e2e/test_story.py"}


def test_what_tests_with_servers_use_of_the_gate_has_tests_without() -> None:
    assert set(chosen("tests/gate/order.py").reasons) == {"tests/unit/test_order.py"}


@pytest.mark.parametrize("file", ["strange.xyz", "operator/tidegate/data.bin", "a/new/kind.of", "devcluster/x.py"])
def test_what_nobody_knows_runs_everything(file: str) -> None:
    assert file in chosen("crds/a.yaml", file).everything


def test_what_everything_runs_on_runs_everything() -> None:
    assert "pyproject.toml" in chosen("pyproject.toml").everything


def test_a_module_that_is_gone_counts_for_those_beside_it_and_a_test_that_is_gone_for_nothing() -> None:
    assert set(chosen("operator/tidegate/gone.py").of_tier("unit")) == {"tests/unit/test_plan.py"}
    assert chosen("tests/unit/test_gone.py") == Selection()


def test_some_tests_run_whatever_changed_and_nothing_runs_for_no_change() -> None:
    assert "tests/unit/test_alone.py" in chosen("crds/a.yaml", always=["tests/unit/test_alone.py"]).reasons
    assert chosen(always=["tests/unit/test_alone.py"]) == Selection()


def test_why_a_test_runs_is_said_with_the_file_in_between() -> None:
    reasons = chosen("operator/tidegate/rule.py").reasons
    assert reasons["tests/unit/test_plan.py"] == "operator/tidegate/rule.py via operator/tidegate/plan.py"
    assert reasons["tests/integration/area/test_area.py"] == "operator/tidegate/rule.py (table)"


@pytest.mark.parametrize(
    ("pattern", "file", "matching"),
    [
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**", "a/b/c.py", True),
        ("a/**snapshot**", "a/b/snapshot_x/c.py", True),
        ("a.py", "aXpy", False),
        ("**/py.typed", "a/b/py.typed", True),
    ],
)
def test_patterns(pattern: str, file: str, matching: bool) -> None:
    assert matches(pattern, file) is matching


def test_files_that_differ_run_whole_and_others_without_what_is_long() -> None:
    one = command("e2e", ["tests/e2e/test_story.py"])
    assert one == [sys.executable, "-m", "pytest", "tests/e2e/test_story.py", "-m", "not long or changed", "-q"]


def test_on_a_cluster_that_is_given_there_is_room_for_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_E2E_CLUSTER", "dev")
    assert "--numprocesses" not in command("e2e", ["a", "b"])
    monkeypatch.delenv("TIDEGATE_E2E_CLUSTER")
    monkeypatch.delenv("TIDEGATE_KUBECONFIG", raising=False)
    assert "--numprocesses" in command("e2e", ["a", "b"])


@pytest.fixture(scope="module")
def files() -> list[str]:
    return tracked()


@pytest.fixture(scope="module")
def needs(files: list[str]) -> Needs:
    return read_graph(ROOT, files)


class TestThisCheckout:
    def test_imports_or_the_table_lead_from_every_file_to_its_tests(self, files: list[str], needs: Needs) -> None:
        # Together is as good as each alone: the first one that nobody knows ends it. Without what runs everything.
        table = read_table(TABLE.read_text())
        narrow = [file for file in files if EVERYTHING not in reported(file, table)]
        assert len(files) - len(narrow) < 10
        assert select(narrow, needs, table, set(files)).everything == ""

    def test_a_changed_test_with_servers_leads_to_hardly_any_other(self, files: list[str], needs: Needs) -> None:
        users = reverse(needs)
        tests = [file for file in files if is_test(file) and file.startswith(SERVERS)]
        # Few tests import from another one; who names a tier's folder is none of them.
        led = {file: {user for user in reached([file], users) if user in tests} for file in tests}
        assert tests
        assert sum(map(len, led.values())) < len(tests) / 10, {file: others for file, others in led.items() if others}

    def test_the_tests_of_a_program_are_those_that_name_it(self, files: list[str], needs: Needs) -> None:
        program = "tests/integration/spark_runtime/scripts/slow_batch.py"
        selection = select([program], needs, read_table(TABLE.read_text()), set(files))
        assert {test for test in selection.reasons if test.startswith(SERVERS)} == {
            "tests/integration/spark_runtime/test_stopping.py"
        }

    def test_every_file_of_the_product_is_in_the_table(self, files: list[str]) -> None:
        table = read_table(TABLE.read_text())
        assert [file for file in files if file.startswith(PRODUCT) and not reported(file, table)] == []

    def test_every_pattern_is_about_a_file_and_every_place_has_tests(self, files: list[str]) -> None:
        table = read_table(TABLE.read_text())
        tests = [file for file in files if is_test(file)]
        places = {place for rule in table.rules for place in rule.tests} | set(table.always)
        stale = [p for rule in table.rules for p in rule.files if not any(matches(p, file) for file in files)]
        assert set(stale) <= NOT_THERE_YET
        assert [p for p in places - {"*"} if not any(is_below(test, [p]) for test in tests)] == []

    def test_the_import_graph_sees_fixtures_packages_and_what_is_named(self, needs: Needs) -> None:
        inner = needs["tests/integration/spark_runtime/test_endings.py"]
        assert {"tests/conftest.py", "tests/integration/conftest.py"} <= inner
        assert "operator/tidegate/app/rules/__init__.py" in needs["tests/unit/operator/app/rules/test_ends.py"]
        # By the name of a module that another process imports, and by path.
        assert "spark_app/tidegate_spark/contract/protocol.py" in needs["tests/unit/architecture/test_layout.py"]
        assert "Makefile" not in needs["tests/unit/architecture/test_makefile.py"]
        assert "docs/recipes.md" in needs["tests/unit/runtime/repartition/test_capability.py"]
        # A test may need what makes a page, and by that what the page is made of.
        assert "docs/generate_metrics.py" in needs["tests/unit/chart/test_dashboard.py"]
        assert "operator/tidegate/wiring/metrics.py" in needs["docs/generate_metrics.py"]
        assert all(Path(os.path.join(ROOT, file)).is_file() for file in needs)


SERVERS = ("tests/integration/", "tests/e2e/")
NOT_THERE_YET = {"tests/durations.json"}
