"""What the guide says about fields, phases and settings is what the code does. Reads the docs."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tidegate.api.change_classes import CHANGE_CLASSES, ChangeClass, fields_of
from tidegate.api.control_message import CONTROL_KIND, ControlMessageSpec
from tidegate.api.stream_snapshot import SNAPSHOT_KIND, StreamSnapshotSpec
from tidegate.api.streaming_app import KIND, Phase, StreamingAppSpec
from tidegate_spark.contract.control_protocol import BUILT_IN_TYPES
from tidegate_spark.contract.owned_settings import IN_EFFECT, OWNED_KEYS, OWNED_STARTS
from tidegate_spark.contract.reasons.entry import Place

ROOT = Path(__file__).parents[3]
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs" / "guide").glob("*.md"))}
GUIDE = "\n".join(PAGES.values())
MOST_LINES = 350
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)]
EXAMPLES = [block for block in BLOCKS if block.get("kind", KIND) == KIND]
MESSAGES = [block for block in BLOCKS if block.get("kind") == CONTROL_KIND]
SNAPSHOTS = [block for block in BLOCKS if block.get("kind") == SNAPSHOT_KIND]
REQUIRED = {"application": {"image": "x", "main": "x"}, "storage": {"uri": "s3://x"}}


def section(page: str, title: str) -> str:
    """Return what a page has below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGES[page], re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[1]


def first_column(text: str) -> list[str]:
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    return [name for row in rows[1:] for name in re.findall(r"`([^`]+)`", row) or [row]]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_spec_the_operator_reads(example: dict[str, dict[str, dict[str, object]]]) -> None:
    given = example["spec"]
    complete = {**REQUIRED, **{k: {**REQUIRED.get(k, {}), **v} if isinstance(v, dict) else v for k, v in given.items()}}
    read = msgspec.to_builtins(msgspec.convert(complete, StreamingAppSpec))
    for group, fields in given.items():
        assert fields == read[group] if not isinstance(fields, dict) else fields.keys() <= read[group].keys(), group


@pytest.mark.parametrize("example", SNAPSHOTS)
def test_every_example_of_a_snapshot_is_one_the_operator_reads(example: dict[str, Any]) -> None:
    read = msgspec.to_builtins(msgspec.convert(example["spec"], StreamSnapshotSpec))
    assert example["spec"].keys() <= read.keys(), (
        "an example in docs/guide has a field that api/stream_snapshot.py does not read: correct it"
    )


@pytest.mark.parametrize("example", MESSAGES)
def test_every_example_of_a_message_is_one_the_operator_reads(example: dict[str, Any]) -> None:
    read = json.loads(msgspec.json.encode(msgspec.json.decode(json.dumps(example["spec"]), type=ControlMessageSpec)))
    assert example["spec"] == {name: value for name, value in read.items() if name in example["spec"]}, (
        "an example in docs/guide has a field that api/control_message.py does not read, or reads otherwise: correct it"
    )


def test_every_type_that_all_applications_understand_is_named() -> None:
    named = section("control-messages.md", "Send control messages")
    assert [kind for kind in BUILT_IN_TYPES if f"`{kind}`" not in named] == [], (
        "name it in docs/guide/control-messages.md, under Send control messages"
    )
    control = (ROOT / "docs" / "control.md").read_text()
    described = first_column(control.partition("\n## Built-in types\n")[2].partition("\n## ")[0])
    assert [kind for kind in BUILT_IN_TYPES if kind not in described] == [], (
        "give it a row in docs/control.md, under Built-in types"
    )
    description = _message_types()
    assert [kind for kind in BUILT_IN_TYPES if f"{kind}:" not in description] == [], (
        "describe it in crds/controlmessages.tidegate.dev.yaml, spec.type; then make generate"
    )


def _message_types() -> str:
    crd = yaml.safe_load((ROOT / "crds" / "controlmessages.tidegate.dev.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return str(schema["properties"]["spec"]["properties"]["type"]["description"])


def test_every_phase_is_explained() -> None:
    assert first_column(section("watch.md", "Phases")) == [phase.value for phase in Phase], (
        "docs/guide/watch.md, under Phases, has a row for each, in the order of the enumeration"
    )


def test_every_condition_beside_the_three_is_explained_and_in_the_schema() -> None:
    kinds = [place.value.removeprefix("condition ") for place in Place if place.value.startswith("condition ")]
    crds = "\n".join(path.read_text() for path in (ROOT / "crds").glob("*.yaml"))
    assert [kind for kind in kinds if kind not in GUIDE] == [], "explain it in docs/guide/watch.md"
    assert [kind for kind in kinds if f"{kind}:" not in crds and f"{kind}," not in crds] == [], (
        "describe it in crds/*.yaml, status.conditions; then make generate"
    )


def test_the_table_of_edits_is_the_table_of_change_classes() -> None:
    rows = re.findall(r"^\| (`.+`) \| (.+) \|$", section("change.md", "Change an application"), re.MULTILINE)
    effects = {effect for _, effect in rows}
    by_effect = [[fields for fields, effect in rows if effect == each] for each in effects]
    documented = {tuple(sorted(re.findall(r"`([^`]+)`", ", ".join(fields)))) for fields in by_effect}
    given = {fields_of(change_class) for change_class in ChangeClass}
    assert documented == given, _difference(
        {f for each in given for f in each}, {f for each in documented for f in each}
    )
    assert sum(len(fields) for fields in documented) == len(CHANGE_CLASSES)


def _difference(classes: set[str], documented: set[str]) -> str:
    return (
        "the table in docs/guide/change.md lists each field of api/change_classes.py, in the row of its class: "
        f"add {sorted(classes - documented)}, remove {sorted(documented - classes)}"
    )


def test_the_table_of_owned_settings_is_tidegates() -> None:
    rows = re.findall(r"^\| (`spark\..+`) \| (.+)\. \|$", section("spark-settings.md", "Spark settings"), re.MULTILINE)
    documented = {key: remedy for keys, remedy in rows for key in re.findall(r"`([^`…]+)…?`", keys)}
    known = {**OWNED_KEYS, **OWNED_STARTS}
    assert documented == {key: remedy[0].upper() + remedy[1:] for key, remedy in known.items()}, (
        "the table of settings in docs/guide/spark-settings.md has each of contract/owned_settings.py with its remedy"
    )
    assert [key for key in IN_EFFECT if f"`{key}`" not in section("spark-settings.md", "Spark settings")] == [], (
        "name these of contract/owned_settings.IN_EFFECT in docs/guide/spark-settings.md"
    )


def test_every_page_is_short_and_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([a-z-]+\.md)\)", PAGES["README.md"]))
    assert listed == PAGES.keys() - {"README.md"}, (
        "docs/guide/README.md links to each page of the folder, and to no other"
    )
    assert [page for page, text in PAGES.items() if len(text.splitlines()) > MOST_LINES] == [], (
        f"divide these pages of docs/guide: each has at most {MOST_LINES} lines"
    )
