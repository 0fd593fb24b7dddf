"""Whether a script's text shows that it starts one unnamed query and no more. Reads files, runs nothing.

Nothing else can show it before the first query runs: the script goes on only after its ``start()``, and by then the
query has read the state. So this says yes only where the text leaves no other way, and no wherever it does not know:
a loop, a function that is called twice, a writer that is made in another module, code that is made while it runs.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tidegate_spark.contract.protocol import RUNTIME_DIRECTORY

_STARTS = frozenset({"start", "toTable"})
_WRITER = "writeStream"
_MAKES_WRITERS = (b"writeStream", b"DataStreamWriter")
_MAKES_CODE = frozenset({"exec", "eval", "compile", "__import__"})
"""Python's own, by their bare names: ``re.compile``, ``frame.eval`` and the like are others'."""
_BUILTINS = frozenset({"builtins", "__builtins__"})
_LOADS_CODE = frozenset({"import_module", "run_path", "run_module"})
_AGAIN = (
    *(ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.Lambda, ast.ClassDef),
)
"""What may run what is in it more than once, or nobody knows when."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LIBRARIES = frozenset({"site-packages", "dist-packages"})
_NOT_OF_PROGRAMS = frozenset({"pyspark", "py4j", "tidegate_spark"})


def starts_one(text: str, name: str) -> bool:
    """Return whether a program starts one unnamed query, once, and no other one that may have a certain name. Pure.

    Args:
        text: the program's.
        name: that none of its other queries may have.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    nodes = list(ast.walk(tree))
    writers = [node for node in nodes if _names(node) & {_WRITER, "DataStreamWriter"}]
    starts = [node for node in nodes if isinstance(node, ast.Call) and _attribute(node) in _STARTS]
    chained = [call for call in starts if _chain(call) & set(writers)]
    parents = {child: parent for parent in nodes for child in ast.iter_child_nodes(parent)}
    if len(chained) != len(writers):
        # A writer that has a name may be started by each start() that there is, and one that is given away by anybody.
        chained = starts
        if not all(_stays(writer, parents, nodes) for writer in writers):
            return False
    unnamed = [call for call in chained if not _is_named_otherwise(call, name)]
    if len(unnamed) != 1 or len(writers) != len(chained) or any(map(_makes_code, nodes)):
        return False
    relative = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
    if any(not isinstance(parents[node], ast.Module) for node in relative):
        return False  # what is imported later, nobody knows by now
    return _runs_once(unnamed[0], parents, nodes)


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _chain(call: ast.Call) -> set[ast.AST]:
    """Return what a call stands behind, in one chain of calls and attributes."""
    found: set[ast.AST] = set()
    inner: ast.AST = call.func
    while isinstance(inner, ast.Attribute | ast.Call):
        found.add(inner)
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    return found


def _stays(writer: ast.AST, parents: dict[ast.AST, ast.AST], nodes: list[ast.AST]) -> bool:
    """Return whether nobody else gets a writer: it is started where it is made, or by the variable that it becomes."""
    node, parent = writer, parents[writer]
    while isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
        node, parent = parent, parents[parent]
    if isinstance(node, ast.Call) and _attribute(node) in _STARTS:
        return True
    targets = parent.targets if isinstance(parent, ast.Assign) and isinstance(writer, ast.Attribute) else []
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    used = [each for each in nodes if isinstance(each, ast.Name) and each.id == targets[0].id]
    return all(isinstance(each.ctx, ast.Store) or isinstance(parents[each], ast.Attribute) for each in used)


def _names(node: ast.AST) -> set[str]:
    """Return what a node names: a writer by a string, too."""
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.alias):
        return {node.name.rpartition(".")[2]}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value} & {_WRITER}
    return set()


def _makes_code(node: ast.AST) -> bool:
    """Return whether a node names what runs code that is not in the text: then nobody knows what that starts."""
    if isinstance(node, ast.Attribute):
        return node.attr in _LOADS_CODE or (
            node.attr in _MAKES_CODE and isinstance(node.value, ast.Name) and node.value.id in _BUILTINS
        )
    if isinstance(node, ast.ImportFrom):
        own = _MAKES_CODE if node.module in _BUILTINS else frozenset()
        return any(alias.name in own | _LOADS_CODE for alias in node.names)
    if isinstance(node, ast.Name):
        return node.id in _MAKES_CODE
    return _asks_for_code(node)


def _asks_for_code(node: ast.AST) -> bool:
    """Return whether such a thing is asked for by its name as a string."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        asked = node.args[1:2]
    elif isinstance(node, ast.Subscript):
        asked = [node.slice]
    else:
        return False
    texts = {each.value for each in asked if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return bool(texts & _LOADS_CODE) or (bool(texts & _MAKES_CODE) and _is_of_builtins(node))


def _is_of_builtins(node: ast.Call | ast.Subscript) -> bool:
    of = node.value if isinstance(node, ast.Subscript) else node.args[0]
    while isinstance(of, ast.Attribute | ast.Call):
        of = of.func if isinstance(of, ast.Call) else of.value
    return isinstance(of, ast.Name) and of.id in {*_BUILTINS, "globals", "vars"}


def _is_named_otherwise(start: ast.Call, name: str) -> bool:
    """Return whether a query gets a name, in one chain of calls with its start, that is surely not ``name``."""
    given = [keyword.value for keyword in start.keywords if keyword.arg == "queryName"]
    inner: ast.AST = start.func
    while isinstance(inner, ast.Attribute | ast.Call):
        if isinstance(inner, ast.Call) and _attribute(inner) == "queryName":
            given += inner.args
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    values = [node.value for node in given if isinstance(node, ast.Constant)]
    return bool(given) and len(values) == len(given) and all(values) and name not in values


def _runs_once(node: ast.AST, parents: dict[ast.AST, ast.AST], nodes: list[ast.AST]) -> bool:
    """Return whether what is at a node runs at most once in a process."""
    seen: set[ast.AST] = set()
    while node in parents:
        node = parents[node]
        if isinstance(node, _AGAIN) or node in seen:
            return False
        seen.add(node)
        if isinstance(node, _FUNCTIONS):
            call = _only_call(node, nodes, parents)
            if call is None:
                return False
            node = call
    return True


def _only_call(
    function: ast.FunctionDef | ast.AsyncFunctionDef, nodes: list[ast.AST], parents: dict[ast.AST, ast.AST]
) -> ast.AST | None:
    """Return where a function is called, None if it is not only called, and only there."""
    named = [node for node in nodes if function.name in _names(node)]
    defined = [node for node in nodes if isinstance(node, _FUNCTIONS) and node.name == function.name]
    if len(named) != 1 or len(defined) != 1 or function.decorator_list or isinstance(parents[function], ast.ClassDef):
        return None  # what calls a method, and how often, its name alone does not show
    call = parents.get(named[0])
    return call if isinstance(call, ast.Call) and call.func is named[0] else None


def is_only(site: str, name: str) -> bool:
    """Return whether a script that starts an unnamed query starts no other one that may be the one of a name.

    Args:
        site: file and line of the start.
        name: the query's whose state there is.
    """
    program = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    if not program or site.rpartition(":")[0] != program:
        return False
    try:
        text = Path(program).read_text(encoding="utf-8")
        return starts_one(text, name) and not any(map(_makes_writers, _other_files(program, text)))
    except Exception:  # whatever a file, a parser or somebody's import hook raises: it is not known then
        return False


def _makes_writers(path: Path) -> bool:
    content = path.read_bytes()
    return any(word in content for word in _MAKES_WRITERS)


def _other_files(program: str, text: str) -> Iterator[Path]:
    """Yield the files of all other modules that may take part: those that are loaded, and those that will be.

    Raises:
        ImportError: one that will be is not found.
        OSError, ValueError: one that is loaded cannot be read.
    """
    loaded = [
        Path(file)
        for name, module in list(sys.modules.items())
        if _may_start_queries(name)
        and isinstance(file := getattr(module, "__file__", None), str)
        and file.endswith(".py")
        and file != program
    ]
    yield from loaded
    own = [path.read_text(encoding="utf-8") for path in loaded if not _is_of_library(path)]
    for name in sorted(set().union(*map(_imported, [text, *own]))):
        if name not in sys.modules and _may_start_queries(name):
            yield from _files_of(name)


def _is_of_library(path: Path) -> bool:
    """Return whether nobody wrote a file for this program: what such a file imports, and does not find, is optional.

    Python's own folder has more than the standard library: ``sitecustomize`` of Debian's asks for a module that its
    images do not have. An injected runtime lies in a folder of its own, with what it needs.
    """
    folders = (sysconfig.get_path("stdlib"), RUNTIME_DIRECTORY)
    return bool(_LIBRARIES & set(path.parts)) or any(map(path.is_relative_to, folders))


def _files_of(module: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise ImportError(module)
    if spec.submodule_search_locations is not None:
        for folder in spec.submodule_search_locations:
            yield from Path(folder).rglob("*.py")
    elif spec.origin is not None and spec.origin.endswith(".py"):
        yield Path(spec.origin)


def _may_start_queries(module: str) -> bool:
    top = module.partition(".")[0]
    return top not in _NOT_OF_PROGRAMS and top not in sys.stdlib_module_names


def _imported(text: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
