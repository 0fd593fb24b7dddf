"""A manifest in the shape that the API had is refused in one line that names the field and its new name."""

import re
from pathlib import Path
from typing import Any

import pytest

from docs import generate_reference
from docs.former_names import FormerName, former_names
from tidegate_testing import plain_yaml
from tidegate_testing.crd import MINIMAL, create
from tidegate_testing.kubectl import Kubectl, KubectlError

SNAPSHOT: dict[str, Any] = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "StreamSnapshot",
    "metadata": {"name": "nightly"},
    "spec": {"appRef": {"name": "orders"}},
}
MESSAGE = {**SNAPSHOT, "kind": "ControlMessage", "spec": {"appRef": {"name": "orders"}, "type": "ping"}}
KINDS: dict[str, tuple[Path, dict[str, Any]]] = {
    "app": (generate_reference.SOURCE, MINIMAL),
    "snapshot": (generate_reference.SNAPSHOT_SOURCE, SNAPSHOT),
    "message": (generate_reference.MESSAGE_SOURCE, MESSAGE),
}
"""Each CRD with the smallest manifest of its kind."""
NEEDED = {"autoscaling": {"maxExecutors": 4}, "startFrom": {}}
"""What a group has to have beside the former name."""
VALUES: dict[str, Any] = {"string": "1h", "integer": 70, "object": {"name": "x"}, "array": ["ping"]}


def all_former_names() -> list[tuple[str, FormerName]]:
    found = []
    for kind, (source, _) in KINDS.items():
        (version,) = plain_yaml.load(source.read_text())["spec"]["versions"]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        found += [(kind, each) for each in former_names(spec)]
    return found


def written(kind: str, former: FormerName) -> dict[str, Any]:
    """Return a manifest with the former name in its place, and what has to be beside it."""
    value: Any = VALUES[former.schema.get("type", "string")]
    for part in reversed(former.path.split(".")):
        value = [{"schedule": "0 8 * * *", **value}] if part.endswith("[]") else value
        value = {part.removesuffix("[]"): value}
    (group, inner) = next(iter(value.items()))
    smallest = KINDS[kind][1]
    known = {**NEEDED.get(group, {}), **smallest["spec"].get(group, {})}
    return {**smallest, "spec": {**smallest["spec"], group: {**known, **inner} if isinstance(inner, dict) else inner}}


def test_there_are_former_names_of_each_kind() -> None:
    assert {kind for kind, _ in all_former_names()} == set(KINDS)


@pytest.mark.parametrize(("kind", "former"), all_former_names(), ids=lambda it: it if isinstance(it, str) else it.path)
def test_a_former_name_is_refused_with_the_new_one(
    api_kubectl: Kubectl, namespace: str, kind: str, former: FormerName
) -> None:
    with pytest.raises(KubectlError) as refused:
        create(api_kubectl, namespace, written(kind, former))
    old = former.path.replace("[]", "")
    assert re.fullmatch(rf"{re.escape(old)} was renamed: use [A-Za-z.]+(,| |$).*", former.refusal), former.refusal
    lines = [line for line in str(refused.value).splitlines() if former.refusal in line]
    assert len(lines) == 1, refused.value


@pytest.mark.parametrize(
    ("kind", "group", "refusal"),
    [
        ("app", {"upgrade": {"rollbackPolicy": "Auto"}}, '"Auto": supported values: "OnFailure", "Never"'),
        ("snapshot", {"export": {"format": "Csv"}}, '"Csv": supported values: "JSONLines", "CSV", "Parquet"'),
        ("snapshot", {"export": {"format": "JsonLines"}}, '"JsonLines": supported values: "JSONLines", "CSV"'),
    ],
)
def test_a_former_word_is_refused_with_the_words_there_are(
    api_kubectl: Kubectl, namespace: str, kind: str, group: dict[str, Any], refusal: str
) -> None:
    smallest = KINDS[kind][1]
    with pytest.raises(KubectlError) as refused:
        create(api_kubectl, namespace, {**smallest, "spec": {**smallest["spec"], **group}})
    assert refusal in str(refused.value)
