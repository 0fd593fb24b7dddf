"""Which lines of the operator and of the runtime the tests without a cluster execute.

``python -m tests.gate.coverage [-m EXPRESSION] [FILE …]`` runs unit and integration tests, or the named ones of them,
under coverage, in every process that they start in this environment: workers, operators, drivers, Python workers of
Spark. The last line that it prints is one JSON object. What runs in pods is not counted. Starts processes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.gate.record import note

ROOT = Path(__file__).parents[2]
PACKAGES = {"operator": "operator/tidegate", "runtime": "spark_app/tidegate_spark"}
INTEGRATION = "tests/integration"
PATHS = ("tests/unit", "tests/property", "tests/scenario", INTEGRATION)
NOTHING_SELECTED = 5
"""pytest's exit code if no test is selected."""

# Those that are killed lose what they executed; those that are asked to end, that fork, or that leave without Python's
# usual end (Spark's workers) do not.
_SETTINGS = """[run]
parallel = true
data_file = {folder}/data
source =
    {sources}
patch =
    subprocess
    fork
    _exit
sigterm = true
disable_warnings =
    no-data-collected
    module-not-measured
    couldnt-parse
"""


def main(arguments: Sequence[str]) -> int:
    """Run the tests and print the result; return pytest's exit code, of the first part that fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.coverage", description=__doc__)
    parser.add_argument("-m", dest="selection", default="", help="pytest's expression of markers, such as 'not long'")
    parser.add_argument("paths", nargs="*", default=PATHS, help="files or folders of tests")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tidegate-coverage-") as name:
        folder = Path(name)
        settings = folder / "settings"
        sources = "\n    ".join(str(ROOT / package) for package in PACKAGES.values())
        settings.write_text(_SETTINGS.format(folder=folder, sources=sources))
        codes = [_run(part, options.selection, settings) for part in parts(options.paths)]
        _coverage("combine", "--quiet", settings=settings)
        report = folder / "report.json"
        _coverage("json", "--quiet", "-o", str(report), settings=settings)
        counted = result(json.loads(report.read_text())["files"], ROOT)
    code = next((code for code in codes if code not in (0, NOTHING_SELECTED)), 0)
    whole = tuple(options.paths) == PATHS
    summary = {"run": "coverage", "selection": options.selection, "whole": whole, "passed": code == 0, **counted}
    note(summary)
    print(json.dumps(summary))
    return code


def parts(paths: Sequence[str]) -> list[list[str]]:
    """Return pytest's arguments for each part: files of integration tests share servers, so a file stays together."""
    integration = [path for path in paths if path.startswith(INTEGRATION)]
    others = [path for path in paths if path not in integration]
    both = [
        ["--dist", "worksteal", *others] if others else [],
        ["--dist", "loadfile", "--no-loadscope-reorder", *integration] if integration else [],
    ]
    return [part for part in both if part]


def result(files: Mapping[str, Mapping[str, Mapping[str, int]]], root: Path) -> dict[str, float]:
    """Return the percentage of each package's lines that were executed, and the lines of both.

    Args:
        files: what coverage reports of each file, by its path, which may be relative to ``root``.
        root: the checkout.
    """
    counted: dict[str, float] = {}
    lines = 0
    for name, package in PACKAGES.items():
        summaries = [found["summary"] for path, found in files.items() if (root / path).is_relative_to(root / package)]
        all_lines = sum(summary["num_statements"] for summary in summaries)
        covered = sum(summary["covered_lines"] for summary in summaries)
        counted[name] = round(100 * covered / all_lines, 2) if all_lines else 0.0
        lines += all_lines
    return {**counted, "lines": lines}


def _run(part: Sequence[str], selection: str, settings: Path) -> int:
    select = ["-m", selection] if selection else []
    command = ["run", "-m", "pytest", "-q", "--numprocesses", "2", *select, *part]
    return _coverage(*command, settings=settings, check=False)


def _coverage(command: str, *arguments: str, settings: Path, check: bool = True) -> int:
    return subprocess.run(
        [sys.executable, "-m", "coverage", command, f"--rcfile={settings}", *arguments],
        cwd=ROOT,
        check=check,
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
