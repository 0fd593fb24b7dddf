"""How the coverage of lines is counted, and which tests are run together for it."""

from pathlib import Path

from tests.gate import coverage


def _file(covered: int, lines: int) -> dict[str, dict[str, int]]:
    return {"summary": {"num_statements": lines, "covered_lines": covered}}


def test_each_package_has_its_own_percentage_over_all_of_its_lines(tmp_path: Path) -> None:
    files = {
        "operator/tidegate/a.py": _file(9, 10),
        "operator/tidegate/app/b.py": _file(0, 10),
        str(tmp_path / "spark_app/tidegate_spark/c.py"): _file(3, 4),
        "tests/d.py": _file(5, 5),
    }
    assert coverage.result(files, tmp_path) == {"operator": 45.0, "runtime": 75.0, "lines": 24}


def test_integration_tests_are_run_apart_with_each_file_on_one_worker() -> None:
    unit, integration = coverage.parts(["tests/unit", "tests/integration/test_chart.py"])
    assert unit == ["--dist", "worksteal", "tests/unit"]
    assert integration == ["--dist", "loadfile", "--no-loadscope-reorder", "tests/integration/test_chart.py"]


def test_without_integration_tests_there_is_one_run() -> None:
    assert coverage.parts(["tests/unit/images"]) == [["--dist", "worksteal", "tests/unit/images"]]
