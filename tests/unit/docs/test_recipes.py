"""Commands in the docs name fields that the CRDs have. Reads the docs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.former_names import without_former_names
from tidegate_testing import plain_yaml

ROOT = Path(__file__).parents[3]
KINDS = {"sapp": "streamingapps", "snap": "streamsnapshots", "ctl": "controlmessages"}
NAMES = {"StreamingApp": "streamingapps", "StreamSnapshot": "streamsnapshots", "ControlMessage": "controlmessages"}
GUIDE = tuple(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs" / "guide").glob("*.md")))
PAGES = ("README.md", *GUIDE, "docs/recipes.md", "docs/tour.md", "docs/samples.md", "docs/install.md")


def schema_of(plural: str) -> dict[str, Any]:
    crd = plain_yaml.load((ROOT / "crds" / f"{plural}.tidegate.dev.yaml").read_text())
    found: dict[str, Any] = without_former_names(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return found


SCHEMAS = {plural: schema_of(plural) for plural in NAMES.values()}


def wrong(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Yield what the API server would refuse: unknown fields, words that are none of the enumeration, other types."""
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r}"
    if isinstance(value, dict) and "properties" in schema:
        for name, inner in value.items():
            known = schema["properties"].get(name)
            if known is not None:
                yield from wrong(known, inner, f"{path}.{name}")
            elif not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{path}.{name}: unknown"
    elif isinstance(value, list) and "items" in schema:
        for number, inner in enumerate(value):
            yield from wrong(schema["items"], inner, f"{path}[{number}]")
    kind = {"integer": int, "boolean": bool, "array": list, "object": dict}.get(schema.get("type", ""))
    if kind is not None and not isinstance(value, kind):
        yield f"{path}: {value!r} is no {schema['type']}"


def manifests(text: str) -> list[dict[str, Any]]:
    """Return what is applied, and whole resources that are shown."""
    blocks = re.findall(r"<<'?END'?.*?\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)
    blocks += re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    found = [plain_yaml.load(block) for block in blocks]
    return [each for each in found if isinstance(each, dict) and each.get("kind") in NAMES]


def patches(text: str) -> list[tuple[str, Any]]:
    """Return kind and content of every merge patch."""
    found = re.findall(r"patch (sapp|snap) .*?-p\s+(?:'(.*?)'|\"(.*?[^\\\\])\")", text, re.DOTALL)
    texts = [(KINDS[kind], plain or quoted) for kind, plain, quoted in found]
    return [(plural, json.loads(_without_shell(text))) for plural, text in texts]


def _without_shell(text: str) -> str:
    """Return JSON as it is after the shell; what is escaped from its first quote on stands in double quotes."""
    return text.replace('\\"', '"') if text.startswith('{\\"') else text


def status_paths(text: str) -> list[tuple[str, str]]:
    """Return kind and path of every field of a status that is asked for."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if "jsonpath" in line]
    found = []
    for line in lines:
        kind = re.search(r"\b(sapp|snap|ctl)[ /]", line)
        if kind is not None:
            found += [(KINDS[kind[1]], path) for path in re.findall(r"\{(?:range )?(\.status[.\w]*)", line)]
    return found


def test_what_is_applied_is_what_the_api_server_takes() -> None:
    taken = [each for page in PAGES for each in manifests((ROOT / page).read_text())]
    assert len(taken) > 10, "the pattern does find them"
    assert [w for each in taken for w in wrong(SCHEMAS[NAMES[each["kind"]]], each, each["kind"])] == [], (
        f"a manifest on one of {PAGES} has these fields, which its CRD in crds/ does not take: correct them"
    )


def test_what_is_patched_are_fields() -> None:
    given = [each for page in PAGES for each in patches((ROOT / page).read_text())]
    assert len(given) > 10, "the pattern does find them"
    assert [w for plural, patch in given for w in wrong(SCHEMAS[plural], patch, plural)] == [], (
        f"a patch on one of {PAGES} has these fields, which its CRD in crds/ does not take: correct them"
    )


def test_what_is_asked_for_is_in_the_status() -> None:
    asked = [each for page in PAGES for each in status_paths((ROOT / page).read_text())]
    assert len(asked) > 10, "the pattern does find them"
    for plural, path in asked:
        node = SCHEMAS[plural]
        for part in path.strip(".").split("."):
            known = node.get("properties", {}).get(part) or node.get("additionalProperties")
            assert known, f"a page asks for {path} of {plural}, which crds/ does not have: correct it (pages: {PAGES})"
            node = known


def test_a_field_that_is_none_and_a_word_that_is_none_are_found() -> None:
    spec = {"spec": {"upgrade": {"mode": "Snap", "rehearse": {}}, "suspend": 1}}
    assert list(wrong(SCHEMAS["streamingapps"], spec, "")) == [
        ".spec.upgrade.mode: 'Snap'",
        ".spec.upgrade.rehearse: unknown",
        ".spec.suspend: 1 is no boolean",
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "spark_app" / "samples").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_sample_is_what_its_crd_takes(path: Path) -> None:
    (resource,) = [each for each in plain_yaml.load_all(path.read_text()) if each["kind"] in NAMES]
    schema = SCHEMAS[NAMES[resource["kind"]]]
    assert list(wrong(schema["properties"]["spec"], resource["spec"], "spec")) == [], (
        f"{path.relative_to(ROOT)} has these fields, which its CRD in crds/ does not take: correct them"
    )


def test_the_examples_of_the_chart_for_artifact_hub_are_one_of_each_kind_as_its_crd_takes_it() -> None:
    chart = plain_yaml.load((ROOT / "charts" / "tidegate" / "Chart.yaml").read_text())
    examples = plain_yaml.load(chart["annotations"]["artifacthub.io/crdsExamples"])
    assert sorted(each["kind"] for each in examples) == sorted(NAMES), (
        "artifacthub.io/crdsExamples in charts/tidegate/Chart.yaml has one example of each kind"
    )
    assert [w for each in examples for w in wrong(SCHEMAS[NAMES[each["kind"]]], each, each["kind"])] == [], (
        "correct these fields in artifacthub.io/crdsExamples of charts/tidegate/Chart.yaml"
    )


def test_a_sample_whose_script_is_in_a_config_map_brings_a_script_that_can_be_read() -> None:
    (config_map, app) = plain_yaml.load_all((ROOT / "spark_app/samples/word-count-from-configmap.yaml").read_text())
    reference = app["spec"]["application"]["mainFrom"]["configMapKeyRef"]
    assert (config_map["kind"], config_map["metadata"]["name"]) == ("ConfigMap", reference["name"])
    assert compile(config_map["data"][reference["key"]], reference["key"], "exec")
