"""A script imports what it would import under Python, although the runtime has loaded modules of the same names."""

import subprocess
import sys
from pathlib import Path

import pytest

import tidegate_spark

SOURCES = str(Path(tidegate_spark.__file__).parents[1])
AS_DRIVER = """
import sys
from tidegate_spark.driver.preflight import Main
from tidegate_spark.driver.script.script import run_script
import secrets, shared, shared.loaded, used, compiled._part
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
before = {{name: module for name, module in sys.modules.items() if name.startswith("shared")}}
sys.modules["compiled._part"].__spec__.origin += EXTENSION_SUFFIXES[0]
sys.path.insert(0, {py_files!r})
outcome = run_script(Main({main!r}), [])
print(outcome.message if outcome.exception else "as before:", used.versions(), flush=True)
"""
INSTALLED = {
    "shared/__init__.py": "VERSION = 'installed'\n",
    "shared/loaded.py": "def later():\n    from . import VERSION, later\n    return VERSION, later.VERSION\n",
    "shared/later.py": "from shared import VERSION\n",
    "shared/last.py": "from . import VERSION\n",
    "compiled/__init__.py": "VERSION = 'installed'\n",
    "compiled/_part.py": "",
    "used.py": (
        "import importlib\nfrom shared import loaded\n"
        "def versions():\n    import shared\n    from shared import last as other\n    import shared.last as again\n"
        "    return (shared.VERSION, *loaded.later(), other.VERSION, again.VERSION,\n"
        "            importlib.import_module('shared.last').VERSION, hasattr(shared, 'own'))\n"
    ),
    "imported_late.py": "from shared import VERSION\n",
}
OWN = {"shared/__init__.py": "VERSION = 'own'\n", "shared/own.py": "from . import VERSION\n"}


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def run(tmp_path: Path, script: str, *, driver: bool) -> tuple[list[str], str]:
    """Return what a script prints, and its errors."""
    installed, main = tmp_path / "installed", tmp_path / "app" / "main.py"
    put(installed, INSTALLED)
    put(main.parent, {"main.py": script})
    (tmp_path / "files").mkdir(exist_ok=True)
    program = AS_DRIVER.format(main=str(main), py_files=str(tmp_path / "files"))
    path = f"{tmp_path / 'files'}:{installed}" if not driver else f"{SOURCES}:{installed}"
    done = subprocess.run(
        [sys.executable, *(("-c", program) if driver else (str(main),))],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout.splitlines(), done.stderr


USES = "import shared, shared.own, imported_late\nprint(shared.VERSION, shared.own.VERSION, imported_late.VERSION)\n"


@pytest.mark.parametrize(
    ("own", "script"),
    [
        ({"app/secrets.py": "KEY = 'own'\n"}, "from secrets import KEY\nprint(KEY)"),
        ({f"app/{name}": text for name, text in OWN.items()}, USES),
        ({f"files/{name}": text for name, text in OWN.items()}, USES),
        ({f"lib/{name}": text for name, text in OWN.items()}, f"import sys; sys.path = [LIB] + sys.path\n{USES}"),
        ({f"lib/{name}": text for name, text in OWN.items()}, f"import sys; sys.path.insert(0, LIB)\n{USES}"),
        (
            {f"app/{name}": text for name, text in OWN.items()},
            "import importlib\nprint(importlib.import_module('shared.own').VERSION, __import__('shared').VERSION)",
        ),
        (
            {f"lib/{name}": text for name, text in OWN.items()},
            "import shared, sys; sys.path.insert(0, LIB)\nimport shared as again, imported_late\n"
            "print(shared.VERSION, again is shared, imported_late.VERSION)",
        ),
        ({"app/shared/data.txt": "", "app/secrets/data.txt": ""}, "import secrets, shared\nprint(shared.VERSION)"),
        ({"app/compiled.py": "VERSION = 'own'"}, "import compiled\nprint(compiled.VERSION)"),
        ({"app/os.py": "raise ValueError"}, "import os, shared\nprint(shared.VERSION, os.name)"),
        (
            {"app/shared.py": "raise ValueError('its own error')"},
            "try:\n    import shared\nexcept ValueError as error:\n    print(error)",
        ),
    ],
)
def test_a_script_has_the_modules_that_it_has_under_python_and_the_runtime_keeps_its_own(
    tmp_path: Path, own: dict[str, str], script: str
) -> None:
    script = script.replace("LIB", repr(str(tmp_path / "lib")))
    put(tmp_path, own)
    plain, _ = run(tmp_path, script, driver=False)
    (*lines, last), errors = run(tmp_path, script, driver=True)
    assert lines == plain, errors
    assert plain
    assert last == f"as before: {('installed',) * 6 + (False,)}", errors


def test_a_module_of_the_scripts_is_said_to_be_used(tmp_path: Path) -> None:
    put(tmp_path / "app", OWN)
    _, errors = run(tmp_path, "import shared\nfrom tidegate_spark.process.log_lines import log_to_stderr", driver=True)
    assert errors == ""
    log = "from tidegate_spark.process.log_lines import log_to_stderr; log_to_stderr()\n"
    _, errors = run(tmp_path, f"{log}import shared", driver=True)
    for place in ("app", "installed"):
        assert str(tmp_path / place / "shared" / "__init__.py") in errors


def test_a_library_with_compiled_modules_stays_the_one_that_is_loaded_and_that_is_said(tmp_path: Path) -> None:
    """Loaded twice in one process, many of them fail."""
    put(tmp_path / "app", {"compiled/__init__.py": "VERSION = 'own'\n"})
    lines, errors = run(tmp_path, "import compiled\nprint(compiled.VERSION)", driver=True)
    assert lines[0] == "installed"
    assert str(tmp_path / "app" / "compiled" / "__init__.py") in errors
