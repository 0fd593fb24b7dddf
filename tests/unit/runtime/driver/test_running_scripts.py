"""A program is run as Python would run it, and is the module ``__main__`` for as long as anything of it goes on."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tidegate_spark

SOURCES = str(Path(tidegate_spark.__file__).parents[1])
PROGRAM = """
import pickle, sys
from dataclasses import dataclass

@dataclass
class Order:
    number: int

def later():
    return pickle.loads(pickle.dumps(Order(4))).number

sys.later = later
print(__name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, flush=True)
"""
AFTERWARDS = """
import sys
from tidegate_spark.driver.preflight import Main
from tidegate_spark.driver.script.script import run_script

outcome = run_script(Main({main}), ["--fast"])
print(outcome.reason.value, outcome.message if outcome.exception else sys.later(), flush=True)
"""


def run(main: str, path: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", AFTERWARDS.format(main=main)],
        env={"PYTHONPATH": f"{SOURCES}:{path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_file_is_the_main_module_after_its_last_line_too(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(PROGRAM)
    assert run(f"path={str(file)!r}", tmp_path) == [
        f"__main__ {file} None None {[str(file), '--fast']}",
        "Completed 4",
    ]


@pytest.mark.parametrize(("name", "place"), [("app", "app.py"), ("shop", "shop/__main__.py")])
def test_so_is_a_module_and_a_package(tmp_path: Path, name: str, place: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(PROGRAM)
    (tmp_path / "shop").mkdir(exist_ok=True)
    (tmp_path / "shop" / "__init__.py").touch()
    package, known = ("shop", "shop.__main__") if name == "shop" else ("", "app")
    assert run(f"module={name!r}", tmp_path) == [
        f"__main__ {file} {package} {known} {[str(file), '--fast']}",
        "Completed 4",
    ]


def test_an_archive_with_a_main_module_runs(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", "import sys; sys.later = lambda: 5; print(__name__, flush=True)")
    assert run(f"path={str(tmp_path / 'app.zip')!r}", tmp_path) == ["__main__", "Completed 5"]


def test_a_package_without_a_main_module_is_said_not_to_run(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (said,) = run("module='shop'", tmp_path)
    assert "Module 'shop' cannot be run" in said


@pytest.mark.parametrize(
    ("hook", "said"),
    [("lambda kind, error, trace: print('reported', error, flush=True)", ["reported the cause"]), ("None", [])],
)
def test_an_exception_that_leaves_a_script_goes_to_its_own_hook_and_is_the_reason(
    tmp_path: Path, hook: str, said: list[str]
) -> None:
    file = tmp_path / "app.py"
    file.write_text(f"import sys\nsys.excepthook = {hook}\nraise ValueError('the cause')\n")
    *before, last = run(f"path={str(file)!r}", tmp_path)
    assert before == said
    assert last == f"ApplicationFailed the cause ({file}, line 3)"
