"""How large a module, a folder and a function of the product may be, and what may be larger for a reason.

The product is the operator and the runtime; samples, tests and the development cluster may be what they are.
"""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator, Set
from pathlib import Path

ROOT = Path(__file__).parents[3]
LINES_OF_MODULE, MODULES_OF_FOLDER, LINES_OF_FUNCTION = 400, 14, 40
"""An ``__init__`` does not count as a module, nor a docstring as lines of a function."""

LONG_MODULES = {
    "spark_app/tidegate_spark/contract/protocol.py": "a contract: its names are imported from here by other versions",
    "spark_app/tidegate_spark/contract/reasons/areas/driver.py": "a table with one entry a reason",
}
FULL_FOLDERS: dict[str, str] = {}
LONG_FUNCTIONS = {
    "operator/tidegate/app/rules/status.py::build_status": "one line a field",
    "operator/tidegate/pods/builders/driver_config.py::build_driver_config": "one line a field",
    "operator/tidegate/pods/records/read_pods.py::build_record": "one line a field",
}


def modules() -> dict[str, str]:
    """Return the product's modules: path -> text."""
    patterns = ("operator/tidegate/*.py", "spark_app/tidegate_spark/*.py")
    listing = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return {path: (ROOT / path).read_text() for path in listing.stdout.splitlines() if (ROOT / path).exists()}


def functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, int]]:
    """Yield each function of a tree by its full name, with its lines that are no docstring."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}.{child.name}".removeprefix(".")
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            text = child.body[0] if ast.get_docstring(child) is not None else None
            said = (text.end_lineno or text.lineno) - text.lineno + 1 if text is not None else 0
            yield name, (child.end_lineno or child.lineno) - child.lineno + 1 - said
        yield from functions(child, name)


def long_modules(sources: dict[str, str]) -> set[str]:
    return {path for path, text in sources.items() if len(text.splitlines()) > LINES_OF_MODULE}


def full_folders(sources: dict[str, str]) -> set[str]:
    counted = Counter(str(Path(path).parent) for path in sources if Path(path).stem != "__init__")
    return {folder for folder, count in counted.items() if count > MODULES_OF_FOLDER}


def long_functions(sources: dict[str, str]) -> set[str]:
    return {
        f"{path}::{name}"
        for path, text in sources.items()
        for name, lines in functions(ast.parse(text))
        if lines > LINES_OF_FUNCTION
    }


def remedy(found: Set[str], allowed: Set[str], limit: str) -> str:
    """Return what a failure says: what is too large, what is allowed in vain, and what to do."""
    lists = "with its reason in a list of this file, if it cannot be divided"
    return "\n".join(
        (
            *(f"{each} has more than {limit}: divide it, or name it {lists}" for each in sorted(found - allowed)),
            *(
                f"{each} has no more than {limit}: take it out of the list of this file"
                for each in sorted(allowed - found)
            ),
        )
    )


def test_no_module_is_longer_than_it_may_be() -> None:
    said = remedy(long_modules(modules()), LONG_MODULES.keys(), f"{LINES_OF_MODULE} lines")
    assert not said, said


def test_no_folder_has_more_modules_than_it_may_have() -> None:
    said = remedy(full_folders(modules()), FULL_FOLDERS.keys(), f"{MODULES_OF_FOLDER} modules")
    assert not said, said


def test_no_function_is_longer_than_it_may_be() -> None:
    said = remedy(long_functions(modules()), LONG_FUNCTIONS.keys(), f"{LINES_OF_FUNCTION} lines, its docstring aside")
    assert not said, said


def test_what_is_too_large_is_noticed() -> None:
    long = "def long():\n    '''Say a lot.\n    '''\n" + "    pass\n" * LINES_OF_FUNCTION
    assert long_functions({"a.py": f"class Its:\n    x = 1\n{long}"}) == {"a.py::long"}
    assert long_functions({"a.py": long.removesuffix("    pass\n")}) == set()
    assert long_modules({"a.py": "\n" * 401, "b.py": "\n" * 400}) == {"a.py"}
    crowd = {f"folder/m{number}.py": "" for number in range(MODULES_OF_FOLDER)}
    assert full_folders({**crowd, "folder/__init__.py": ""}) == set()
    assert full_folders({**crowd, "folder/more.py": ""}) == {"folder"}
    large, allowed = remedy({"a.py"}, {"b.py"}, "400 lines").splitlines()
    assert large.startswith("a.py has more than 400 lines: divide it")
    assert allowed.startswith("b.py has no more than 400 lines: take it out")
