"""Which file of this checkout needs which others: by its imports, and by the modules and files that its tests name.

Edges are between files and not between modules, because a file can be a module under two names, and need files that are
none.
"""

import ast
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grimp

from tests.gate.tiers import TIERS

ROOTS = {
    "tidegate": "operator",
    "tidegate_spark": "spark_app",
    "samples": "spark_app",
    "devcluster": "",
    "tests": "",
    "docs": "",
    "tidegate_testing": "tests/support",
}
"""Each package of this checkout, and the folder in which it is."""
TESTS = frozenset(folder for tier in TIERS for folder in tier.folders)
"""Who names a whole tier's folder collects its tests, and needs none of them."""
_NAME = re.compile(rf"\b(?:{'|'.join(ROOTS)})(?:\.\w+)+")
_SCRIPT = re.compile(r"\b\w+\.py\b")

Needs = Mapping[str, frozenset[str]]
"""For each file of Python that is known, the files that it needs."""


def read_graph(root: Path, tracked: Iterable[str]) -> Needs:
    """Return what each module of a checkout needs."""
    files = frozenset(tracked)
    graph = build(root)
    modules = {module: found for module in graph.modules if (found := file_of(module, files))}
    needs: dict[str, set[str]] = defaultdict(set)
    for module, file in modules.items():
        for imported in (module, *graph.find_modules_directly_imported_by(module)):
            needs[file].update(_with_packages(imported, modules))
    folders = folders_of(files)
    for file in list(needs):
        if file.startswith("tests/"):
            needs[file].update(conftests(file, files))
            texts = list(_constants((root / file).read_text()))
            needs[file].update(named(texts, modules, files, folders), scripts_of(file, texts, files))
        needs[file].discard(file)
    return {file: frozenset(found) for file, found in needs.items()}


def build(root: Path) -> grimp.ImportGraph:
    """Return grimp's graph of the packages as they are in this checkout, wherever Python would find others."""
    before = sys.path
    sys.path = [*(str(root / folder) for folder in dict.fromkeys(ROOTS.values())), *before]
    try:
        return grimp.build_graph(*ROOTS, cache_dir=None)
    finally:
        sys.path = before


def file_of(module: str, files: frozenset[str]) -> str | None:
    """Return the file of a module; None: it has none, as a folder without ``__init__.py``."""
    stem = "/".join(part for part in (ROOTS[module.partition(".")[0]], *module.split(".")) if part)
    return next((name for name in (f"{stem}.py", f"{stem}/__init__.py") if name in files), None)


def _with_packages(module: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the files that importing a module runs: its own and those of the packages that it is in."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        file = modules.get(".".join(parts[:length]))
        if file is not None:
            yield file


def conftests(file: str, files: frozenset[str]) -> list[str]:
    """Return the files of fixtures that pytest reads for a test file, or that another such file builds upon."""
    folders = [*Path(file).parents]
    return [name for folder in folders if (name := (folder / "conftest.py").as_posix()) in files and name != file]


def folders_of(files: Iterable[str]) -> dict[str, set[str]]:
    """Return each folder with all files below it."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for folder in Path(file).parents:
            found[folder.as_posix()].add(file)
    return found


def named(
    texts: Iterable[str], modules: Mapping[str, str], files: frozenset[str], folders: Mapping[str, set[str]]
) -> set[str]:
    """Return the files that these texts name: as modules, which another process runs, or by their path."""
    found: set[str] = set()
    for text in texts:
        for name in _NAME.findall(text):
            parts = name.split(".")
            lengths = range(len(parts), 1, -1)
            module = next((m for m in (".".join(parts[:n]) for n in lengths) if m in modules), None)
            found.update(_with_packages(module, modules) if module else ())
        path = os.path.normpath(text) if "/" in text and len(text) < 200 else ""
        if path in files:
            found.add(path)
        # A whole top folder, such as docs/, says too little; the path table has those.
        elif "/" in path and path not in TESTS:
            found.update(folders.get(path, ()))
    return found


def scripts_of(file: str, texts: Iterable[str], files: frozenset[str]) -> set[str]:
    """Return the programs in ``scripts/`` beside a file that these texts name, as pods and drivers are told them."""
    folder = f"{Path(file).parent.as_posix()}/scripts"
    return {path for text in texts for name in _SCRIPT.findall(text) if (path := f"{folder}/{name}") in files}


def _constants(text: str) -> Iterator[str]:
    """Yield the texts of a module, and the paths that it puts together with ``/``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield "/".join(_parts(node))


def _parts(node: ast.expr) -> list[str]:
    """Return the literal end of a path, part by part."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        if not (isinstance(node.right, ast.Constant) and isinstance(node.right.value, str)):
            return []
        return [*_parts(node.left), node.right.value]
    return []
