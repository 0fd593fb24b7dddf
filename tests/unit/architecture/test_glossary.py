"""Pages, charts, comments, docstrings and texts are in the glossary's words. Reads this project's files."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = {
    "cannot": r"\bcan not\b(?! only)",
    "the previous version": r"\bthe version before\b(?! (?:the|it|that|this|an?|its)\b)",
    "fix": r"\bmend(?:s|ed|ing)?\b",
    "exponential back-off": r"\bgrowing pauses\b",
    "requeue, check again": r"\blook(?:s|ed)? again\b",
    "defer": r"\bputs? off\b",
    "release": r"\blet(?:s|ting)? go of\b|\b(?:is|are|was|be|been) let go\b",
    "repartition": r"\bdivid(?:e|es|ed|ing) (?:the state |state )?anew\b",
    "again": r"\banew\b|\bafresh\b",
    "start from, start with": r"\bbegins? with\b",
}
"""What the glossary says -> a pattern of what it replaces; only what is unmistakable as a phrase."""
ONLY_ON_PAGES = {
    "report": r"\btold\b|\btells?\b",
    "metrics": r"\bfigures\b",
    "check, evaluate": r"\b(?:is|are|was|were) (?:not )?looked at\b",
    "termination message": r"\blast words\b",
    "delete a resource": r"\blets? (?:the|this|its) (?:resource|application) go\b|\bresource goes\b(?! from)",
    "rollback snapshot": r"\b(?:the|another) pin\b|\bpin of an upgrade\b",
    "roll back": r"\b(?:takes?|taken|took|taking) (?:\w+ )?back\b",
}
"""Likewise, for what people read who use Tidegate; in comments, these are also ordinary English."""
ONLY_IN_PRODUCT = {"report, publish, call with, distinguish": r"\btold\b|\btell(?:s|ing)?\b"}
"""Likewise, for comments and texts of what is no test: "is told of" hides who gives what to whom."""
IDENTIFIERS = {
    "message, text, details": r"last_words|_?words_of",
    "reported, events": r"_?told|_?is_told|RememberTold|TellOfMessage|_?tell|tell_(?:notices|scaling)",
    "service": r"_?desk|\w*Desk",
    "store, queue, registry": r"_?book|\w+Book",
    "repository": r"_?library|Library|reach_library",
    "worker, manager, monitor": r"_?keeper|\w*Keeper",
    "reader": r"_?looker|Looker",
    "check, poll": r"_?looks?|look_at|look_again_in|_?look_at_\w+|LookAgain|LOOK_SECONDS",
    "metrics": r"_?figures|\w*Figures",
    "fix": r"_?mend|mends|mended",
    "repartition": r"_?dividing|_?divides|\w*_divided",
    "release": r"(?:\w*_)?(?:lets?_go(?!_on)|let_gone)\w*",
    "roll back": r"(?:\w*_)?(?:take|takes|taken)_back\w*",
    "start from, start with": r"(?:\w*_)?(?:begins?|begun|began)_with(?!in)\w*",
    "rejection, obstacle": r"unfit|Unfit|why_unfit",
    "events, faults": r"weather|Weather|happenings?|HAPPENINGS?|Happening",
    "restart budget, totals": r"FailureAccount|WorkAccount",
    "unowned pods": r"Strangers",
}
"""What the glossary says -> a pattern of the names in code that it replaces, whole; modules and folders, too."""
NAMES_OF_OTHERS = {
    "spark_app/tidegate_spark/queries/state/version_notices.py": {"told"},  # a stored form's key
}
"""Path -> names that stay, because they are stored."""
NOT_HERE = (
    "tests/last_landing/",  # as it was landed
    "tests/unit/architecture/test_messages.py",  # they name what is not to be there
    "tests/unit/architecture/test_glossary.py",
)
_QUOTED = re.compile(r'`[^`\n]*`|"figures":|\bmend-again\b|name: mend\b')
_FEWEST_SPACES = 2


def pages() -> dict[str, str]:
    """Return the texts for those who use Tidegate, by path."""
    found = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "crds").glob("*.yaml")]
    chart = ROOT / "charts"
    found += [path for path in chart.rglob("*") if path.suffix in {".yaml", ".tpl", ".txt", ".json", ".md"}]
    return _read(found)


def code() -> dict[str, str]:
    """Return what people read of each module (comments, docstrings, whole sentences) and of its changes, by path."""
    folders = ("operator", "spark_app", "tests", "devcluster", "docs", "images", "charts", "supply_chain")
    found = _read(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {path: prose(text) for path, text in found.items()} | _read([ROOT / "CHANGELOG.md", ROOT / "Makefile"])


def _read(paths: Iterable[Path]) -> dict[str, str]:
    found = {str(path.relative_to(ROOT)): path for path in paths}
    return {path: where.read_text() for path, where in found.items() if not path.startswith(NOT_HERE)}


def prose(text: str) -> str:
    """Return a module's comments, docstrings and texts of three words and more, a line each."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(
        token.string
        for token in tokens
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and _is_sentence(token.string))
    )


def _is_sentence(text: str) -> bool:
    return text.count(" ") >= _FEWEST_SPACES


def replaced(texts: Mapping[str, str], phrases: Mapping[str, str]) -> list[str]:
    """Return each line with a phrase that the glossary replaces, and what it has instead."""
    compiled = {say: re.compile(pattern, re.IGNORECASE) for say, pattern in phrases.items()}
    return [
        f"{path}: say {say!r}: {line.strip()}"
        for path, text in texts.items()
        for line in _QUOTED.sub("", text).splitlines()
        for say, pattern in compiled.items()
        if pattern.search(line)
    ]


def names(text: str) -> set[str]:
    """Return the names that a module defines: functions, classes, arguments, variables and attributes."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def replaced_names(path: str, text: str) -> list[str]:
    """Return each name of a module that the glossary replaces, and what it has instead."""
    compiled = {say: re.compile(pattern) for say, pattern in IDENTIFIERS.items()}
    known = (names(text) | {Path(path).stem, Path(path).parent.name}) - NAMES_OF_OTHERS.get(path, set())
    return sorted(
        f"{path}: say {say!r}: {name}" for name in known for say, pattern in compiled.items() if pattern.fullmatch(name)
    )


def test_pages_are_in_the_glossarys_words() -> None:
    assert replaced(pages(), PAGES | ONLY_ON_PAGES) == []


def test_comments_and_texts_are_in_the_glossarys_words() -> None:
    assert replaced(code(), PAGES) == []


def test_the_products_comments_say_who_reports_what() -> None:
    folders = ("operator/", "spark_app/", "devcluster/")
    product = {path: text for path, text in code().items() if path.startswith(folders)}
    assert replaced(product | _read((ROOT / "jvm").rglob("*.java")), ONLY_IN_PRODUCT) == []


@pytest.mark.parametrize(
    "planted",
    ["The pod can not start.", "Divide the state anew", "It begins with a snapshot.", "The snapshot is let go."],
)
def test_a_planted_phrase_is_found(planted: str) -> None:
    assert replaced({"docs/planted.md": planted}, PAGES) != []
    assert replaced({"planted.py": prose(f"# {planted}\n")}, PAGES) != []


def test_a_pin_is_only_what_keeps_files_from_spark() -> None:
    texts = {"docs/planted.md": "It is rolled back to the pin.\nThere is no pin: they go.\n"}
    assert replaced(texts, ONLY_ON_PAGES) == ["docs/planted.md: say 'rollback snapshot': It is rolled back to the pin."]


def test_a_name_in_code_is_no_prose() -> None:
    assert replaced({"planted.py": prose('mend(anew, "begins with")\n')}, PAGES) == []


@pytest.mark.parametrize("folder", ["operator", "spark_app", "tests", "devcluster", "docs", "images", "supply_chain"])
def test_names_in_code_are_in_the_glossarys_words(folder: str) -> None:
    texts = _read((ROOT / folder).rglob("*.py"))
    assert [each for path, text in texts.items() for each in replaced_names(path, text)] == []


@pytest.mark.parametrize(
    "planted", ["def look(told): ...", "class SnapshotDesk: ...", "self.figures = 1", "mended = 1"]
)
def test_a_planted_name_is_found(planted: str) -> None:
    assert replaced_names("operator/planted.py", planted) != []


def test_a_word_within_a_name_is_no_name() -> None:
    assert replaced_names("operator/planted.py", "def look_up(passwords, recommended): ...") == []
