"""What the text of a script shows of the queries that it starts. Pure."""

import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from tidegate_spark.queries.unnamed import script_text
from tidegate_spark.queries.unnamed.script_text import is_only, starts_one

ONE = 'query = rows.writeStream.format("noop").option("checkpointLocation", place).start()'

ROOT = Path(__file__).parents[4]
OF_THE_TESTS = tuple(f"{ROOT / folder}/" for folder in ("tests", "operator", "devcluster", "docs", "spark_app/samples"))

SHOWN = {
    "one statement": ONE,
    "a function that is called once": f"def main():\n    {ONE}\nif __name__ == '__main__':\n    main()",
    "functions that call each other": f"def go():\n    {ONE}\ndef main():\n    go()\nmain()",
    "an event loop": f"import asyncio\nasync def main():\n    {ONE}\nasyncio.run(main())",
    "a writer of its own": "writer = rows.writeStream\nquery = writer.start()",
    "a table": 'rows.writeStream.toTable("t")',
    "a try": f"try:\n    {ONE}\nexcept ValueError:\n    raise",
    "a loop that polls": f"{ONE}\nwhile query.isActive:\n    print(query.status)",
    "a function for each batch": "rows.writeStream.foreachBatch(lambda batch, number: batch.count()).start()",
    "a thread of something else": f"import threading\n{ONE}\nthreading.Thread(target=work).start()",
    "a pattern": f'import re\nwords = re.compile("[a-z]+")\n{ONE}',
    "expressions of pandas": f'import pandas as pd\npd.eval("1 + 1")\nmodel.eval()\n{ONE}',
    "a key that is called eval": f'losses["eval"] = 1\nprint("compile")\n{ONE}',
    "others with names": f'{ONE}\nrows.writeStream.queryName("b").start()\nrows.writeStream.start(queryName="c")',
}
NOT_SHOWN = {
    "two": f"{ONE}\n{ONE}",
    "a loop": f"for place in places:\n    {ONE}",
    "a retry": f"while True:\n    {ONE}",
    "a comprehension": "[rows.writeStream.start() for _ in places]",
    "a function that is called twice": f"def go(place):\n    {ONE}\ngo(1)\ngo(2)",
    "a function that is called in a loop": f"def go(place):\n    {ONE}\nfor place in places:\n    go(place)",
    "a function that is given away": f"def go(place):\n    {ONE}\nlist(map(go, places))",
    "a function that calls itself": f"def go(place):\n    {ONE}\n    go(place)",
    "a decorated function": f"@twice\ndef go(place):\n    {ONE}\ngo(1)",
    "a lambda": "go = lambda: rows.writeStream.start()",
    "a class": f"class Job:\n    def go(self):\n        {ONE}",
    "a class whose method has the name of another call": (
        f"class Job(Thread):\n    def run(self):\n        {ONE}\n"
        "subprocess.run(['kinit'])\nfor table in tables:\n    Job(table).start()"
    ),
    "a class whose method is called once": f"class Job:\n    def go(self):\n        {ONE}\nJob().go()",
    "a thread of the function itself": f"def go():\n    {ONE}\nThread(target=go).start()",
    "a thread beside a writer of its own": "writer = rows.writeStream\nwriter.start()\nThread(target=other).start()",
    "a writer that is given away": f"{ONE}\nhelper.run(rows.writeStream)",
    "an attribute by its name": f'{ONE}\ngetattr(rows, "writeStream")',
    "a writer that somebody else gives back": "helper.with_format(rows.writeStream).start()",
    "a writer of its own that is given away": "writer = rows.writeStream\nhelper.run(writer)\nwriter.start()",
    "a writer of its own that is started twice": "writer = rows.writeStream\nwriter.start()\nwriter.start()",
    "code of a file": f"{ONE}\nexec(code)",
    "code of an expression": f"{ONE}\neval(code)",
    "code that is compiled": f"{ONE}\nrun(compile(code, 'code', 'exec'))",
    "code by its module": f"import builtins\n{ONE}\nbuiltins.exec(code)",
    "code by its name": f'import builtins\n{ONE}\ngetattr(builtins, "exec")(code)',
    "code by what is there without import": f'{ONE}\n__builtins__["exec"](code)',
    "a module of which nobody knows": f"import importlib\n{ONE}\nimportlib.import_module(name)",
    "a module that comes later": f"{ONE}\ndef late():\n    from . import more",
    "another one with the same name": f'{ONE}\nrows.writeStream.queryName("main").start()',
    "another one with any name": f"{ONE}\nrows.writeStream.queryName(name).start()",
    "no start": "print(1)",
    "no program": "def",
}


@pytest.mark.parametrize("text", SHOWN.values(), ids=SHOWN)
def test_one_start_is_seen_to_be_the_only_one(text: str) -> None:
    assert starts_one(text, "main")


@pytest.mark.parametrize("text", NOT_SHOWN.values(), ids=NOT_SHOWN)
def test_what_may_start_another_query_is_not_taken_for_one(text: str) -> None:
    assert not starts_one(text, "main")


class Program:
    """A script that runs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.file = folder / "program.py"
        self.file.write_text(text)
        self._patch = monkeypatch
        monkeypatch.syspath_prepend(str(folder))
        # What tests bring along is no part of the program.
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(OF_THE_TESTS):
                monkeypatch.delitem(sys.modules, name)
        main = ModuleType("__main__")
        main.__file__ = str(self.file)
        monkeypatch.setitem(sys.modules, "__main__", main)

    def module(self, name: str, text: str, *, loaded: bool, folder: Path | None = None) -> None:
        path = (folder or self.file.parent) / f"{name}.py"
        path.write_text(text)
        if loaded:
            module = ModuleType(name)
            module.__file__ = str(path)
            self._patch.setitem(sys.modules, name, module)

    def is_only(self, line: str = "") -> bool:
        return is_only(line or f"{self.file}:1", "main")


def test_a_script_of_one_start_is_known_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(tmp_path, monkeypatch, f"import json\n{ONE}")
    assert program.is_only()
    assert not program.is_only("helper.py:1")


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize(
    ("text", "only"), [("def double(n): return 2 * n", True), ("frame.writeStream.start()", False)]
)
def test_modules_of_the_script_are_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, loaded: bool, only: bool
) -> None:
    program = Program(tmp_path, monkeypatch, f"def later():\n    import beside_it\n{ONE}")
    program.module("beside_it", text, loaded=loaded)
    assert program.is_only() is only


def test_a_module_that_is_not_found_may_be_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(tmp_path, monkeypatch, f"{ONE}\ndef later():\n    import nobody_has_this")
    assert not program.is_only()


OPTIONAL = "try:\n    import nobody_has_this\nexcept ImportError:\n    pass\n"
"""As Debian's ``sitecustomize`` has it, and many a library."""


@pytest.fixture(params=["python's own", "an injected runtime's"])
def libraries(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules that nobody wrote for the program, and whose path does not say so."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    if request.param == "python's own":
        monkeypatch.setattr(sysconfig, "get_path", {"stdlib": str(folder)}.__getitem__)
    else:
        monkeypatch.setattr(script_text, "RUNTIME_DIRECTORY", str(folder))
    return folder


@pytest.mark.parametrize(("text", "only"), [(OPTIONAL, True), (f"{OPTIONAL}frame.writeStream.start()", False)])
def test_what_a_library_outside_of_site_packages_does_not_find_starts_nothing_but_the_library_itself_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: Path, text: str, only: bool
) -> None:
    program = Program(tmp_path, monkeypatch, ONE)
    program.module("sitecustomize", text, loaded=True, folder=libraries)
    assert program.is_only() is only


def test_what_a_loaded_module_of_the_script_does_not_find_may_be_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path, monkeypatch, ONE)
    program.module("beside_it", OPTIONAL, loaded=True)
    assert not program.is_only()
