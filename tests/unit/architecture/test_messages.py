"""Texts for people stand in modules of their own, are written in the glossary's words, and no code reads them.

Reads this project's files.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("operator/tidegate/act", "operator/tidegate/autoscaling", "operator/tidegate/decide")
"""Whose texts become conditions and events."""
_NO_MESSAGE = frozenset({"LookAgain", "RetryLaterError", "AssertionError", "KeyError", "must"})
"""Their texts go to the log of the operator."""
_LEAST_SPACES = 2
_SEARCHES = frozenset({"match", "search", "fullmatch", "findall", "finditer", "split"})
_PARTS = frozenset({"startswith", "endswith", "partition", "rpartition", "split", "rsplit", "find", "index", "count"})
_PARTS |= {"removeprefix", "removesuffix"}
_THE_SAME = frozenset({"lower", "casefold", "strip", "lstrip", "rstrip"})
_EXCEPTIONS = frozenset({"error", "exc", "e", "err"})
NOT_OUR_WORDS = (
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


def sentences(text: str) -> list[str]:
    """Return the texts of a module that a person could read: no docstrings, no log lines, nothing of two words."""
    tree = ast.parse(text)
    aside = {id(part) for node in ast.walk(tree) if _is_aside(node) for part in ast.walk(node)}
    aside |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = [_text(node) for node in ast.walk(tree) if id(node) not in aside]
    return [text for text in found if text.count(" ") >= _LEAST_SPACES]


def _is_aside(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "log":
        return True
    return isinstance(node.func, ast.Name) and node.func.id in _NO_MESSAGE


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_for_messages(path: str) -> bool:
    return Path(path).name.endswith("messages.py")


def outside(found: Mapping[str, str]) -> set[str]:
    """Return the sentences of modules that are not for messages."""
    return {
        f"{path}: {text}" for path, source in found.items() if not _is_for_messages(path) for text in sentences(source)
    }


def in_other_words(found: Mapping[str, str]) -> set[str]:
    """Return the sentences that have a phrase which the glossary replaces."""
    pattern = re.compile("|".join(NOT_OUR_WORDS), re.IGNORECASE)
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
    assert outside(modules()) == set()


def test_messages_are_in_the_glossarys_words() -> None:
    assert in_other_words(modules()) == set()


def test_a_command_to_copy_is_in_quotes() -> None:
    assert unquoted_commands(modules()) == set()


def test_a_planted_command_without_quotes_is_found() -> None:
    assert len(unquoted_commands({"messages.py": 'f"See kubectl logs {pod} -n {namespace}."'})) == 1


def test_no_code_reads_a_message_and_foreign_text_is_read_in_one_module_of_each_package() -> None:
    found = reading(modules(["operator/tidegate", "spark_app/tidegate_spark"]))
    assert {path for path in found if "foreign_text.py" not in path} == set()


@pytest.mark.parametrize(
    "planted",
    [
        'def rule(o):\n    return Verdict(phase, health, Reason.RUNNING, "The driver in the pod runs.")\n',
        'def rule(o):\n    message = f"The driver in pod {o.pod} runs."\n    return message\n',
    ],
)
def test_a_planted_message_that_is_built_elsewhere_is_found(planted: str) -> None:
    assert len(outside({"operator/tidegate/decide/planted.py": planted})) == 1
    assert outside({"operator/tidegate/decide/planted_messages.py": planted}) == set()


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
