"""What a traced process notes of itself. Starts processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.walks.count import Trace, read
from tests.walks.traced import sitecustomize

PRODUCT = {
    "__init__.py": "",
    "plain.py": "def work():\n    return 1\n",
    "registering.py": "def register(name):\n    return name\n",
    "table.py": "from product.registering import register\nENTRY = register('entry')\nclass Row:\n    size = 1\n",
    "later.py": "def steps():\n    yield 1\n    yield 2\n",
    "value.py": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Value:\n    number: int\n",
    "program.py": "from product import plain\nplain.work()\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A product's package, and nothing noted yet."""
    (tmp_path / "product").mkdir()
    for name, source in PRODUCT.items():
        (tmp_path / "product" / name).write_text(source)
    return tmp_path


def traced(folder: Path, *arguments: str) -> Trace:
    """Run a program; return what it has noted."""
    traced_by = Path(sitecustomize.__file__).parent
    variables = {
        "PYTHONPATH": f"{traced_by}:{folder}",
        "WALKS_FILE": str(folder / "notes"),
        "WALKS_FOLDERS": str(folder),
    }
    subprocess.run([sys.executable, *arguments], env={**os.environ, **variables}, check=True)
    return read((folder / "notes").read_text().splitlines(keepends=True) if (folder / "notes").exists() else [])


def modules(trace: Trace) -> set[str]:
    return {call.module for call in trace.calls}


def test_a_function_of_the_product_is_noted_with_its_process(folder: Path) -> None:
    trace = traced(folder, "-c", "from product import plain; plain.work()")
    assert [call.module for call in trace.calls] == ["product.plain"]
    assert list(trace.programs) == [trace.calls[0].pid]


def test_what_an_import_runs_is_not_noted(folder: Path) -> None:
    assert modules(traced(folder, "-c", "import product.table")) == set()


def test_a_program_of_the_product_is_no_import(folder: Path) -> None:
    assert modules(traced(folder, "-m", "product.program")) == {"product.plain"}


def test_code_that_dataclasses_make_is_not_noted(folder: Path) -> None:
    assert modules(traced(folder, "-c", "from product.value import Value; Value(1) == Value(1)")) == set()


def test_other_threads_are_noted_too(folder: Path) -> None:
    code = "import threading; from product import plain; t = threading.Thread(target=plain.work); t.start(); t.join()"
    assert modules(traced(folder, "-c", code)) == {"product.plain"}


def test_a_forked_process_is_one_of_its_own(folder: Path) -> None:
    code = "import os; from product import plain; plain.work(); c = os.fork(); plain.work(); c and os.waitpid(c, 0)"
    trace = traced(folder, "-c", code)
    assert {call.pid for call in trace.calls} == set(trace.programs)
    assert sorted(program.endswith("(forked)") for program in trace.programs.values()) == [False, True]


def test_a_generator_that_goes_on_in_a_later_bucket_is_noted_again(folder: Path) -> None:
    later = "import sitecustomize; sitecustomize._noted.clear()"
    code = f"from product import later; steps = later.steps(); next(steps); {later}; next(steps)"
    assert [call.module for call in traced(folder, "-c", code).calls] == ["product.later", "product.later"]
