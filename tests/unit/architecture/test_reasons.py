"""The registry of reasons: complete, used, explained; and each way to break that is found. Reads files."""

import ast
import dataclasses
import re
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

import pytest

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place
from tidegate_spark.contract.reasons.registry import AREAS, entry_of

ROOT = Path(__file__).parents[3]
_REGISTRY = "spark_app/tidegate_spark/contract/reasons/"
_NOT_IN_ANCHORS = re.compile(r"[^\w -]")
_PLACES = {
    "Problem": 0,
    "PublishEvent": 0,
    "Verdict": 2,
    "SnapshotVerdict": 2,
    "MessageVerdict": 2,
    "Fault": 0,
    "notice": 0,
}


def product() -> dict[str, str]:
    """Return the text of each module of both packages by its path, the registry's own aside."""
    paths = [
        path for package in ("operator/tidegate", "spark_app/tidegate_spark") for path in (ROOT / package).rglob("*.py")
    ]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    return {path: text for path, text in texts.items() if not path.startswith(_REGISTRY)}


def pages() -> dict[str, str]:
    return {str(path.relative_to(ROOT / "docs")): path.read_text() for path in (ROOT / "docs").rglob("*.md")}


def entries(areas: Iterable[Area]) -> list[tuple[Area, Entry]]:
    return [(area, entry) for area in areas for entry in area.entries]


def without_entry(areas: Iterable[Area]) -> set[str]:
    return {reason.value for reason in Reason if reason} - {str(entry.reason) for _, entry in entries(areas)}


def twice(areas: Iterable[Area]) -> set[str]:
    named = [str(entry.reason) for _, entry in entries(areas)]
    return {reason for reason in named if named.count(reason) > 1}


def unused(areas: Iterable[Area], modules: Mapping[str, str]) -> set[str]:
    """Return the reasons that no module names."""
    named = {name for text in modules.values() for name in _members(ast.parse(text))}
    return {str(entry.reason) for _, entry in entries(areas) if entry.reason.name not in named}


def _members(tree: ast.AST) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }


def _given(text: str) -> set[str]:
    """Return the members that a module gives; not those that it compares with, or translates."""
    tree = ast.parse(text)
    asked: list[ast.AST] = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    asked += [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys if key is not None]
    for node in asked:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute):
                part.attr = "NONE"
    return {name for name in _members(tree) if name in Reason.__members__ and Reason[name]}


def unknown(modules: Mapping[str, str]) -> set[str]:
    """Return what modules take for reasons and what is none, and reasons written as text instead of as members."""
    found = set()
    for path, text in modules.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason":
                if node.attr not in Reason.__members__ and node.attr not in dir(str):
                    found.add(f"{path}: Reason.{node.attr}")
            elif isinstance(node, ast.Call):
                found |= {f"{path}: {word}" for word in _texts_for_reasons(node)}
    return found


def _texts_for_reasons(call: ast.Call) -> Iterable[str]:
    """Return literals at the place of a call's reason: a word of our own form, whether it is registered or not."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "log":
        return  # a field of a log line
    at = _PLACES.get(name, len(call.args))
    places = call.args[at : at + 1]
    places = [*places, *(keyword.value for keyword in call.keywords if keyword.arg == "reason")]
    for place in places:
        if isinstance(place, ast.Constant) and isinstance(place.value, str) and place.value:
            yield place.value


def pageless(areas: Iterable[Area], texts: Mapping[str, str]) -> set[str]:
    """Return the reasons whose page, or its heading, is not there."""
    return {
        f"{entry.reason}: {entry.page or area.page}"
        for area, entry in entries(areas)
        if not _is_there(entry.page or area.page, texts)
    }


def _is_there(link: str, texts: Mapping[str, str]) -> bool:
    page, _, heading = link.partition("#")
    titles = re.findall(r"^#+ (.+)$", texts.get(page, ""), re.MULTILINE)
    return page in texts and (
        not heading or heading in {_NOT_IN_ANCHORS.sub("", t).strip().lower().replace(" ", "-") for t in titles}
    )


def misplaced(folder: str, places: Set[Place], modules: Mapping[str, str]) -> set[str]:
    """Return the reasons that modules of a folder name, and that the registry expects elsewhere."""
    named = {member for path, text in modules.items() if path.startswith(folder) for member in _given(text)}
    return {str(Reason[name]) for name in named if not places & set(entry_of(Reason[name]).places)}


def helpless(areas: Iterable[Area]) -> set[str]:
    """Return the reasons that are somebody's fault and say neither what to do nor what follows by itself."""
    return {
        str(entry.reason)
        for _, entry in entries(areas)
        if entry.fault is not Fault.NONE and not entry.remedy and not entry.after
    }


def test_every_reason_has_one_entry() -> None:
    assert (without_entry(AREAS), twice(AREAS)) == (set(), set()), (
        f"each reason has one entry, in its area's module in {_REGISTRY}areas/: the first have none, the second several"
    )


def test_every_reason_is_used_and_nothing_else_is_taken_for_one() -> None:
    assert (unused(AREAS, product()), unknown(product())) == (set(), set()), (
        f"the first are given nowhere: use them, or remove member and entry; the second are no member of Reason in "
        f"{_REGISTRY}__init__.py, or are written as text"
    )


@pytest.mark.parametrize(
    ("folder", "places"),
    [
        ("operator/tidegate/autoscaling", {Place.AUTOSCALING}),
        ("operator/tidegate/control/rules", {Place.MESSAGE, Place.REPLY}),
        ("operator/tidegate/snapshots/rules", {Place.SNAPSHOT, Place.VERIFIED, Place.EXPORT, Place.EVENT}),
        (
            "operator/tidegate/app/rules/upgrade",
            {Place.APP, Place.EVENT, Place.UPGRADE, Place.REHEARSAL, Place.REPARTITION},
        ),
        ("operator/tidegate/app/rules/live/channel_status", {Place.CHANNEL}),
        ("spark_app/tidegate_spark/control/", {Place.MESSAGE, Place.REPLY, Place.CHANNEL, Place.EVENT}),
        ("spark_app/tidegate_spark/contract/protocol", {Place.LAST_EXIT}),
        ("spark_app/tidegate_spark/contract/snapshot_protocol", {Place.SNAPSHOT, Place.EXPORT}),
    ],
)
def test_a_reason_is_documented_where_it_stands(folder: str, places: set[Place]) -> None:
    assert misplaced(folder, places, product()) == set(), (
        f"{folder} gives these: add one of {sorted(place.name for place in places)} to the places of their entries"
    )


def test_every_reason_has_a_page() -> None:
    assert pageless(AREAS, pages()) == set(), "docs/ has no such page, or it has no such heading"


def test_every_fault_says_what_to_do_or_what_follows() -> None:
    assert helpless(AREAS) == set(), "write `remedy` or `after` in their entries"


def test_the_name_of_a_reason_is_the_word_itself() -> None:
    assert {r.name: re.sub(r"(?<!^)(?=[A-Z])", "_", r.value).upper() or "NONE" for r in Reason} == {
        r.name: r.name for r in Reason
    }


def test_texts_are_plain_sentences() -> None:
    texts = [text for _, e in entries(AREAS) for text in (e.meaning, e.remedy, e.after) if text]
    assert [text for text in texts if not text.endswith(".") or "`" in text or "](" in text] == [], (
        "in contract/reasons/areas, end these with a full stop, without Markdown: conditions show them as they are"
    )


def unquoted(texts: Iterable[str]) -> list[str]:
    """Return the texts with a command that is not in quotes of its own: a full stop at its end would be copied, too."""
    return [text for text in texts if re.search(r'(?<!")kubectl|"kubectl[^"]*$', text)]


def test_a_command_to_copy_is_in_quotes_and_names_its_namespace() -> None:
    texts = [text for _, e in entries(AREAS) for text in (e.meaning, e.remedy, e.after)]
    commands = [command for text in texts for command in re.findall(r'"(kubectl [^"]+)"', text)]
    assert (unquoted(texts), [it for it in commands if "-n NAMESPACE" not in it and " nodes " not in it]) == ([], [])


@pytest.mark.parametrize("planted", ["See kubectl logs POD.", 'See "kubectl logs POD.'])
def test_a_planted_command_without_quotes_is_found(planted: str) -> None:
    assert unquoted([planted]) == [planted]


@pytest.mark.parametrize(
    ("mistake", "found"),
    [
        ("an unknown reason, by name", 'Verdict(p, h, Reason.UNHEARD_OF, "x")'),
        ("an unknown reason, as text", 'Verdict(phase, health, "UnheardOf", "x")'),
        ("a known reason, as text", 'PublishEvent("Running", "x", False)'),
        ("a reason by keyword", 'moved(upgrade, reason="Copied")'),
    ],
)
def test_a_planted_reason_that_is_not_a_member_is_found(mistake: str, found: str) -> None:
    assert len(unknown({"planted.py": found})) == 1


def test_a_planted_reason_that_nobody_uses_is_found() -> None:
    modules = {path: text.replace("Reason.NODE_TAINTED", "Reason.RUNNING") for path, text in product().items()}
    assert unused(AREAS, modules) == {"NodeTainted"}


@pytest.mark.parametrize("page", ["no-such-page.md", "guide/watch.md#no-such-heading"])
def test_a_planted_reason_without_a_page_is_found(page: str) -> None:
    first = AREAS[0].entries[0]
    planted = dataclasses.replace(AREAS[0], entries=(dataclasses.replace(first, page=page),))
    assert pageless([planted], pages()) == {f"{first.reason}: {page}"}


def test_a_planted_reason_without_an_entry_is_found() -> None:
    planted = dataclasses.replace(AREAS[0], entries=AREAS[0].entries[1:])
    assert without_entry([planted, *AREAS[1:]]) == {str(AREAS[0].entries[0].reason)}
