"""Each promise of Tidegate has tests that prove it on real parts, and a run of the gate ran at least one of each.

``python -m tests.gate.promises REPORTS`` reads the JUnit files of a run and fails for each promise without proof. What
can be known without a run, such as that the tests exist, tests/unit/gate/test_promises.py checks.
"""

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gate import junit
from tests.gate.base import ROOT

LIST = ROOT / "tests" / "promises.toml"
REAL_PARTS = ("tests/integration/", "tests/compatibility/", "tests/e2e/")
KEPT, BROKEN, UNREADABLE = 0, 1, 2

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Promise:
    name: str
    sentence: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class TestId:
    """A test as pytest names it: ``file::Class::function[case]``; without a case, all of them."""

    __test__ = False

    file: str
    classes: tuple[str, ...]
    function: str
    case: str | None = None

    @staticmethod
    def read(text: str) -> "TestId":
        """Read an id; what is between the first bracket and the last is the case, whatever is in it."""
        name, bracket, rest = text.partition("[")
        file, *parts = name.split("::")
        if not parts or (bracket and not rest.endswith("]")):
            raise ValueError(f"{text} is no test's id: file::function or file::function[case]")
        return TestId(file, tuple(parts[:-1]), parts[-1], rest[:-1] if bracket else None)

    @property
    def junit_class(self) -> str:
        """Return what a JUnit file calls the place of the test."""
        return ".".join((self.file.removesuffix(".py").replace("/", "."), *self.classes))

    def is_case(self, name: str) -> bool:
        """Return whether a JUnit file's name is of this test, or one of its cases."""
        function, bracket, rest = name.partition("[")
        if function != self.function:
            return False
        return self.case is None or (bool(bracket) and rest == f"{self.case}]")


def read_promises(text: str) -> list[Promise]:
    """Read promises.toml."""
    read: dict[str, dict[str, Any]] = tomllib.loads(text)
    return [Promise(name, entry["promise"], tuple(entry["tests"])) for name, entry in read.items()]


# --- what is known without a run --------------------------------------------------------------------------------------


def complaints(promises: Iterable[Promise], root: Path = ROOT) -> list[str]:
    """Return what is wrong with a list of promises in this checkout, as sentences."""
    found: list[str] = []
    for promise in promises:
        short = 0
        for test in promise.tests:
            wrong, long = look_up(test, root)
            found += [f"{promise.name}: {wrong}"] if wrong else []
            short += not wrong and not long
        if len(set(promise.tests)) < len(promise.tests):
            found.append(f"{promise.name}: names a test twice.")
        if not promise.sentence.endswith("."):
            found.append(f"{promise.name}: its promise is no sentence.")
        if not short:
            found.append(f"{promise.name}: has no test that is not long, so `make test` would not prove it.")
    return found


def look_up(test: str, root: Path = ROOT) -> tuple[str, bool]:
    """Return what is wrong with the id of a test on real parts, empty if nothing is, and whether the test is long."""
    try:
        wanted = TestId.read(test)
    except ValueError as error:
        return f"{error}.", False
    if not test.startswith(REAL_PARTS):
        return f"{test} is not in {' or '.join(REAL_PARTS)}.", False
    path = root / wanted.file
    if not path.is_file():
        return f"{wanted.file} does not exist.", False
    module = ast.parse(path.read_text())
    way = _find(module, wanted)
    if way is None:
        return f"{test} does not exist.", False
    cases = _cases(module, way[-1])
    if wanted.case is not None and cases and wanted.case not in cases:
        return f"{test} does not exist; the cases are {', '.join(sorted(cases))}.", False
    chosen = cases.values() if wanted.case is None else [cases.get(wanted.case, False)]
    return "", _module_is_long(module) or any(map(_is_long, way)) or (bool(cases) and all(chosen))


def _find(module: ast.Module, wanted: TestId) -> tuple[*tuple[ast.ClassDef, ...], Function] | None:
    """Return the classes around a test's function and the function; None: there is no such test."""
    body: Sequence[ast.stmt] = module.body
    classes: list[ast.ClassDef] = []
    for name in wanted.classes:
        found = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == name), None)
        if found is None:
            return None
        classes.append(found)
        body = found.body
    function = next((node for node in body if isinstance(node, Function) and node.name == wanted.function), None)
    return None if function is None else (*classes, function)


def _is_long(node: ast.ClassDef | Function) -> bool:
    """Return whether a function or a class has the marker."""
    own = node.body if isinstance(node, ast.ClassDef) else []
    return any(_marks_long(decorator) for decorator in node.decorator_list) or _body_is_long(own)


def _module_is_long(module: ast.Module) -> bool:
    return _body_is_long(module.body)


def _body_is_long(body: Iterable[ast.stmt]) -> bool:
    """Return whether ``pytestmark`` has the marker."""
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
        and _marks_long(node.value)
        for node in body
    )


def _marks_long(node: ast.expr) -> bool:
    """Return whether an expression is ``pytest.mark.long``, or a list or call with it."""
    if isinstance(node, ast.Call):
        return _marks_long(node.func)
    if isinstance(node, ast.List | ast.Tuple):
        return any(map(_marks_long, node.elts))
    return ast.unparse(node).endswith("mark.long")


def _cases(module: ast.Module, function: Function) -> Mapping[str, bool]:
    """Return the names of a test's cases as far as they stand there, each with whether it is long.

    Only of a test with one parameter, by decorator or by a fixture of the module; of others nothing is known.
    """
    decorators = [d for d in function.decorator_list if isinstance(d, ast.Call) and _is_call(d, "parametrize")]
    arguments = {argument.arg for argument in function.args.args}
    fixtures = [
        keyword.value
        for node in module.body
        if isinstance(node, Function) and node.name in arguments
        for d in node.decorator_list
        if isinstance(d, ast.Call) and _is_call(d, "fixture")
        for keyword in d.keywords
        if keyword.arg == "params"
    ]
    direct = [d for d in decorators if len(d.args) > 1]
    indirect = any(keyword.arg == "indirect" for d in direct for keyword in d.keywords)
    sources = [d.args[1] for d in direct] + ([] if indirect else fixtures)
    if len(sources) != 1 or any(keyword.arg == "ids" for d in direct for keyword in d.keywords):
        return {}
    values = _constant(module, sources[0])
    named = [_case(value) for value in values.elts] if isinstance(values, ast.List | ast.Tuple) else []
    # One case without a name of its own that stands there, and nothing is known of how many there are.
    return {name: long for name, long in named if name} if named and all(name for name, _ in named) else {}


def _is_call(call: ast.Call, name: str) -> bool:
    return ast.unparse(call.func).endswith(f".{name}")


def _constant(module: ast.Module, node: ast.expr) -> ast.expr:
    """Return what a name of the module stands for."""
    if isinstance(node, ast.Name):
        for line in module.body:
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == node.id:
                return line.value
    return node


def _case(value: ast.expr) -> tuple[str | None, bool]:
    """Return the name of a case, if it stands there, and whether it is long."""
    if not (isinstance(value, ast.Call) and _is_call(value, "param")):
        return (_text(value), False)
    keywords = {keyword.arg: keyword.value for keyword in value.keywords}
    single = value.args[0] if len(value.args) == 1 else None
    named = keywords.get("id", single)
    return (_text(named), "marks" in keywords and _marks_long(keywords["marks"]))


def _text(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return str(node.value)
    return None


# --- what a run has shown ---------------------------------------------------------------------------------------------


def read_reports(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield place and name of each test in the JUnit files of a folder, and whether it ran and passed."""
    for path in sorted(folder.glob("*.xml")):
        for case in junit.read(path):
            yield case.place, case.name, case.outcome == junit.PASSED


def broken(promises: Iterable[Promise], ran: Iterable[tuple[str, str, bool]]) -> list[Promise]:
    """Return the promises that a run did not prove: none of their tests ran and passed."""
    passed: dict[str, list[str]] = {}
    for place, name, well in ran:
        if well:
            passed.setdefault(place, []).append(name)
    return [
        promise
        for promise in promises
        if not any(
            test.is_case(name) for test in map(TestId.read, promise.tests) for name in passed.get(test.junit_class, ())
        )
    ]


def check(folder: Path, listed: Path = LIST) -> tuple[int, list[str]]:
    """Return an exit code, and what to print about a run whose JUnit files are in a folder."""
    if not any(folder.glob("*.xml")):
        return UNREADABLE, [f"promises: there is no JUnit file in {folder}."]
    promises = read_promises(listed.read_text())
    missing = broken(promises, read_reports(folder))
    if not missing:
        return KEPT, [f"promises: {len(promises)} kept"]
    lines = [
        f"promises: {len(missing)} of {len(promises)} were not proven by this run; none of their tests ran and passed:"
    ]
    for promise in missing:
        lines += [f"  {promise.name}: {promise.sentence}", *(f"    {test}" for test in promise.tests)]
    return BROKEN, lines


def main(argv: Sequence[str]) -> int:
    """Print whether a run proved every promise."""
    if len(argv) != 1:
        print("usage: python -m tests.gate.promises FOLDER_WITH_JUNIT_FILES", file=sys.stderr)
        return UNREADABLE
    code, lines = check(Path(argv[0]))
    print("\n".join(lines), file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
