"""Each field of the schema has one class. Reads the CRD."""

from pathlib import Path
from typing import Any

from docs.former_names import without_former_names
from tidegate.api.change_classes import CHANGE_CLASSES, ChangeClass, fields_of
from tidegate_testing import plain_yaml

CRD = plain_yaml.load((Path(__file__).parents[4] / "crds" / "streamingapps.tidegate.dev.yaml").read_text())
SPEC = without_former_names(CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
TAKEN_WHOLE = {"podTemplate"}


def leaves(schema: dict[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, child in schema["properties"].items():
        inner = "properties" in child and name not in TAKEN_WHOLE
        found += leaves(child, f"{prefix}{name}.") if inner else [f"{prefix}{name}"]
    return found


def is_fixed(schema: dict[str, Any]) -> bool:
    return any("oldSelf" in rule["rule"] for rule in schema.get("x-kubernetes-validations", []))


def along(schema: dict[str, Any], leaf: str) -> list[dict[str, Any]]:
    """Return the schemas from a group's down to a leaf's."""
    found = [schema]
    for name in leaf.split(".") if leaf in leaves(schema) else []:
        found.append(found[-1]["properties"][name])
    return found


def test_each_leaf_of_the_schema_has_a_class_and_nothing_else_has() -> None:
    missing, gone = sorted(set(leaves(SPEC)) - set(CHANGE_CLASSES)), sorted(set(CHANGE_CLASSES) - set(leaves(SPEC)))
    assert (missing, gone) == ([], []), (
        "operator/tidegate/api/change_classes.py: the first are fields of crds/streamingapps.tidegate.dev.yaml without "
        "a class, the second are no fields of it"
    )


def test_what_is_refused_as_an_edit_is_what_needs_other_state() -> None:
    fixed = [
        f"{group}.{leaf}"
        for group, schema in SPEC["properties"].items()
        for leaf in (leaves(schema) if "properties" in schema else [])
        if any(is_fixed(each) for each in along(schema, leaf))
    ]
    # Of state there is a way from one number of partitions to another.
    assert sorted([*fixed, "state.partitions"]) == list(fields_of(ChangeClass.STATE_MIGRATION))


def test_the_classes_divide_the_fields() -> None:
    divided = [path for kind in ChangeClass for path in fields_of(kind)]
    assert sorted(divided) == sorted(CHANGE_CLASSES)
