"""Texts for people stand in modules of their own, are written in the glossary's words, and no code reads them.

Reads this project's files.
"""

import ast
import builtins
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[3]
OPERATOR, RUNTIME = "operator/tidegate", "spark_app/tidegate_spark"
PACKAGES = (OPERATOR, RUNTIME)
"""With each module in them."""
_NO_MESSAGE = frozenset({"ObserveAgain", "RetryLaterError", "must"})
"""Their texts go to the log of the operator."""
_LEAST_SPACES = 2
_WORD = re.compile(r"[^\W\d_]{2}")
_WHOLE = re.compile(r"""[\w)\]"][.]["')]*\s|[\w)\]"'][.]["')]*$""")
"""Where a sentence ends, inside a text or with it."""
_BEGINS = re.compile(r"(?:The|An?|This|There|Not|Somebody) \w")
"""How a sentence begins, whatever puts its full stop."""
_SEARCHES = frozenset({"match", "search", "fullmatch", "findall", "finditer", "split"})
_PARTS = frozenset({"startswith", "endswith", "partition", "rpartition", "split", "rsplit", "find", "index", "count"})
_PARTS |= {"removeprefix", "removesuffix"}
_THE_SAME = frozenset({"lower", "casefold", "strip", "lstrip", "rstrip"})
_EXCEPTIONS = frozenset({"error", "exc", "e", "err"})
FOREIGN_TEXTS = (
    r"can not|the version before|another version of before",
    r"\b(?:takes?|taken|took|taking) (?:\w+ ){0,2}back\b",
    r"\bdivid|\bmend\b|\banew\b|\bafresh\b|\bputs? off\b",
    r"\blets? (?:\w+ )?go\b|\bbegins? with\b|\bin force\b|\bfigures\b",
    r"\btells?\b|\btold\b|\blooks? again\b|\bgrowing pauses\b|\bsays? nothing\b",
)
"""Of the glossary's right column, what is unmistakable as a phrase."""


def modules(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


@functools.cache
def sentences(text: str) -> tuple[str, ...]:
    """Return the texts of a module that a person could read: no docstrings, no log lines, nothing of two words."""
    tree = ast.parse(text)
    aside = {id(part) for node in ast.walk(tree) if _is_aside(node) for part in ast.walk(node)}
    aside |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in _literals(node)}
    found = [_text(node) for node in ast.walk(tree) if id(node) not in aside]
    whole = (text for text in found if text.strip().count(" ") >= _LEAST_SPACES)
    return tuple(text for text in whole if _WORD.search(text.replace("X", "")))


def _literals(node: ast.JoinedStr) -> Iterator[ast.AST]:
    """Yield the parts that are no texts of their own: those between what is filled in, and how that is written."""
    for part in node.values:
        if isinstance(part, ast.FormattedValue) and part.format_spec is not None:
            yield part.format_spec
        if isinstance(part, ast.Constant):
            yield part


def _is_aside(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return True
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "log":
        return True
    return isinstance(node.func, ast.Name) and (node.func.id in _NO_MESSAGE or _is_of_python(node.func.id))


def _is_of_python(name: str) -> bool:
    """Return whether this is an exception of Python's own: its text is for who changes the program."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, Exception)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_for_texts(path: str, source: str) -> bool:
    """Return whether texts may stand there: a module for messages, the registry of reasons, others' texts, metrics."""
    if Path(path).name.endswith("messages.py") or path.startswith(f"{RUNTIME}/contract/reasons/"):
        return True
    return Path(path).name == "foreign_text.py" or _makes_metrics(source)


@functools.cache
def _makes_metrics(source: str) -> bool:
    """Return whether a module gives Prometheus its metrics, each with what it means: docs/metrics.md lists them."""
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("prometheus_client")
        and any(name.name.endswith(("Counter", "Gauge", "MetricFamily")) for name in node.names)
        for node in ast.parse(source).body
    )


def outside(found: Mapping[str, str]) -> set[str]:
    """Return the texts that stand in other modules: in the operator each clause, in the runtime each whole sentence.

    The operator shows people what it makes of a resource, clause by clause. In the runtime an exception has a clause of
    what was found, at the place where that was; what is made of it for people is a sentence.
    """
    return {
        f"{path}: {text}"
        for path, source in found.items()
        if not _is_for_texts(path, source)
        for text in sentences(source)
        if path.startswith(OPERATOR) or _WHOLE.search(text.rstrip()) or _BEGINS.match(text.lstrip())
    }


def in_other_words(found: Mapping[str, str]) -> set[str]:
    """Return the sentences that have a phrase which the glossary replaces."""
    pattern = re.compile("|".join(FOREIGN_TEXTS), re.IGNORECASE)
    return {f"{path}: {text}" for path, source in found.items() for text in sentences(source) if pattern.search(text)}


def unquoted_commands(found: Mapping[str, str]) -> set[str]:
    """Return the sentences with a command that is not in quotes: a full stop at its end would be copied, too."""
    pattern = re.compile(r'(?<!")kubectl ')
    return {f"{path}: {text}" for path, source in found.items() for text in sentences(source) if pattern.search(text)}


def reading(found: Mapping[str, str]) -> set[str]:
    """Return where code looks into a message of ours: ``"x" in y.message``, a pattern on it, or a part of it."""
    return {
        f"{path}:{node.lineno}"
        for path, source in found.items()
        for node in ast.walk(ast.parse(source))
        if _reads(node)
    }


def _reads(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        return any(_is_message(part) for part in node.comparators)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, whole = node.func.attr, node.func.value
        if name in _SEARCHES and any(_is_message(part) for part in node.args):
            return True
        return name in _PARTS and _is_message(whole)
    return False


def _is_message(node: ast.AST) -> bool:
    """Return whether it is a message, the text of an exception, or one of them in another case or without its ends."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _THE_SAME:
        return _is_message(node.func.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
        return isinstance(node.args[0], ast.Name) and node.args[0].id in _EXCEPTIONS
    if isinstance(node, ast.Name):
        return node.id == "message"
    return isinstance(node, ast.Attribute) and node.attr in {"message", "reply_text"}


def test_sentences_are_in_modules_for_messages() -> None:
    assert outside(modules()) == set(), "move these sentences into the `*messages.py` beside the module"


def test_messages_are_in_the_glossarys_words() -> None:
    assert in_other_words(modules()) == set(), "say these in the glossary's words, which are in this file"


def test_a_command_to_copy_is_in_quotes() -> None:
    assert unquoted_commands(modules()) == set(), (
        "put the commands of these messages in quotes, so that they can be copied"
    )


def test_a_planted_command_without_quotes_is_found() -> None:
    assert len(unquoted_commands({"messages.py": 'f"See kubectl logs {pod} -n {namespace}."'})) == 1


def test_no_code_reads_a_message_and_foreign_text_is_read_in_one_module_of_each_package() -> None:
    found = reading(modules())
    assert {path for path in found if "foreign_text.py" not in path} == set(), (
        "these read a message: decide by its reason instead; foreign text is read in `foreign_text.py` of each package"
    )


def packages() -> list[str]:
    """Return each folder with modules, of the operator and of the runtime."""
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    return sorted(str(folder.relative_to(ROOT)) for folder in folders)


@pytest.mark.parametrize("package", packages())
@pytest.mark.parametrize(
    "planted",
    [
        'def rule(o):\n    return Verdict(phase, health, Reason.RUNNING, "The driver in the pod runs.")\n',
        'def rule(o):\n    message = f"The driver in pod {o.pod} runs."\n    return message\n',
        'def check(o):\n    raise FaultError(f"There is no {o.place}: {o.answer}. Name another one.")\n',
        'def read(o):\n    raise ChannelError(o.reason, f"The queue {o.name} has another reader")\n',
    ],
)
def test_a_planted_message_that_is_built_elsewhere_is_found_in_each_package(planted: str, package: str) -> None:
    known = modules([package])
    assert outside({**known, f"{package}/planted.py": planted}) == outside({f"{package}/planted.py": planted})
    if not package.startswith(f"{RUNTIME}/contract/reasons"):
        assert len(outside({f"{package}/planted.py": planted})) == 1
    assert outside({f"{package}/planted_messages.py": planted}) == set()


@pytest.mark.parametrize("package", [each for each in packages() if each.startswith(OPERATOR)])
def test_a_planted_clause_is_found_in_each_package_of_the_operator(package: str) -> None:
    planted = 'def check(o):\n    raise SpecError(o.field, "has a name that others have")\n'
    assert len(outside({f"{package}/planted.py": planted})) == 1


def test_what_an_exception_of_the_runtime_found_is_no_message_yet() -> None:
    planted = 'def read(o):\n    raise UnreadableError(o.path, "ends inside a block")\n'
    assert outside({f"{RUNTIME}/planted.py": planted}) == set()


def test_metrics_have_their_descriptions_beside_them_and_others_have_none() -> None:
    planted = 'ENDED = Counter("ended", "Messages that ended.")\n'
    assert outside({f"{OPERATOR}/planted.py": f"from prometheus_client import Counter\n{planted}"}) == set()
    assert len(outside({f"{OPERATOR}/planted.py": f"from tidegate.metrics import Counter\n{planted}"})) == 1


@pytest.mark.parametrize(
    "planted",
    [
        'if "was lost" in status.message:\n    pass\n',
        "_SAID.search(verdict.message)\n",
        'if "lost" in str(error):\n    pass\n',
        'if "lost" in message.lower():\n    pass\n',
        'why = str(exc).strip().partition(": ")\n',
        'text = status.message.removesuffix(" Fix it.")\n',
    ],
)
def test_planted_code_that_reads_a_message_is_found(planted: str) -> None:
    assert reading({"planted.py": planted}) == {"planted.py:1"}


@pytest.mark.parametrize(
    "planted", ["The pod can not start.", "The new version was taken back.", "Mend what it names."]
)
def test_a_planted_phrase_that_the_glossary_replaces_is_found(planted: str) -> None:
    assert len(in_other_words({"messages.py": f"TEXT = {planted!r}\n"})) == 1
