"""The rules of docs/design/api.md hold for each field of the three kinds, and its tables name each field of a spec."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from docs.former_names import without_former_names
from tidegate_testing import plain_yaml

ROOT = Path(__file__).parents[4]
TABLES = (ROOT / "docs" / "design" / "api.md").read_text()
NOT_OURS = {"env", "podTemplate", "imagePullSecrets"}
"""Below them, names are Kubernetes' own."""


@dataclass(frozen=True)
class Field:
    kind: str
    path: str
    """From ``spec`` or ``status`` on."""
    schema: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def below(kind: str, schema: dict[str, Any], path: str) -> Iterator[Field]:
    for name, child in schema.get("properties", {}).items():
        yield Field(kind, f"{path}.{name}", child)
        if name not in NOT_OURS:
            yield from below(kind, child.get("items", child), f"{path}.{name}")


def fields() -> list[Field]:
    found: list[Field] = []
    for crd in sorted((ROOT / "crds").glob("*.yaml")):
        content = plain_yaml.load(crd.read_text())
        (version,) = content["spec"]["versions"]
        parts = without_former_names(version["schema"]["openAPIV3Schema"])["properties"]
        for part in ("spec", "status"):
            found += below(content["spec"]["names"]["kind"], parts[part], part)
    return found


FIELDS = fields()


def is_spec(it: Field) -> bool:
    return it.path.startswith("spec.")


def is_number(it: Field) -> bool:
    return it.schema.get("type") == "integer"


def is_time(it: Field) -> bool:
    return it.schema.get("format") == "date-time"


RULES: dict[str, Callable[[Field], bool]] = {
    "an integer has a format": lambda it: not is_number(it) or it.schema.get("format") in {"int32", "int64"},
    "a duration is an integer": lambda it: not it.name.endswith("Seconds") or is_number(it),
    "a number of seconds has a name that says so": lambda it: (
        not is_number(it) or not it.schema["description"].startswith("Seconds") or it.name.endswith("Seconds")
    ),
    "a point in time has a name that says so, and nothing else has": lambda it: is_time(it) == it.name.endswith("Time"),
    "a share has a name that says so": lambda it: (
        not is_number(it) or "in percent" not in it.schema["description"] or it.name.endswith("Percent")
    ),
    "a spec has no fractions": lambda it: not is_spec(it) or it.schema.get("type") != "number",
    "a spec's reference to a Secret ends in SecretRef": lambda it: (
        not is_spec(it) or "Secret" not in it.name or it.name.endswith("SecretRef") or it.name in NOT_OURS
    ),
    "a reference is an object with a name": lambda it: (
        not it.name.endswith("Ref") or "name" in it.schema["properties"] or it.path.startswith("spec.application.env")
    ),
    "words of an enumeration are in CamelCase": lambda it: all(
        re.fullmatch(r"[A-Z][A-Za-z]+", word) for word in it.schema.get("enum", ())
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_field_keeps_the_rule(rule: str) -> None:
    assert [f"{it.kind}: {it.path}" for it in FIELDS if not RULES[rule](it)] == []


def compared(it: Field) -> bool:
    return re.search(rf"(?<![A-Za-z]){re.escape(it.name)}(?![A-Za-z])", TABLES) is not None


def test_each_field_of_a_spec_is_compared() -> None:
    assert [f"{it.kind}: {it.path}" for it in FIELDS if is_spec(it) and not compared(it)] == [], (
        "give each a row in a table of docs/design/api.md"
    )


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("waitSeconds", {"type": "string", "description": "Seconds to wait."}),
        ("wait", {"type": "integer", "format": "int32", "description": "Seconds to wait."}),
        ("count", {"type": "integer", "description": "Number of them."}),
        ("startedAt", {"type": "string", "format": "date-time", "description": "Time at which it started."}),
        ("share", {"type": "integer", "format": "int32", "description": "Share of them, in percent."}),
        ("ratio", {"type": "number", "description": "Share of them."}),
        ("passwordSecret", {"type": "object", "properties": {"name": {}}, "description": "Secret with it."}),
        ("appRef", {"type": "object", "properties": {"id": {}}, "description": "StreamingApp."}),
        ("mode", {"type": "string", "enum": ["on_failure"], "description": "Mode."}),
    ],
)
def test_a_planted_field_that_breaks_a_rule_is_found(name: str, schema: dict[str, Any]) -> None:
    planted = Field("StreamingApp", f"spec.{name}", schema)
    assert [rule for rule, holds in RULES.items() if not holds(planted)] != []
    assert not compared(Field("StreamingApp", f"spec.{name}Planted", schema))
