"""Former names of fields are refused with the new one until version 0.2, and are gone after it. Reads the project."""

import tomllib
from pathlib import Path

import pytest

from docs.former_names import FormerName, former_names
from tidegate_testing import plain_yaml

ROOT = Path(__file__).parents[3]
LAST = (0, 2)
"""The last version that has them."""


def left() -> list[tuple[str, FormerName]]:
    return [
        (f"{crd.name}: {part}.{former.path}", former)
        for crd in sorted((ROOT / "crds").glob("*.yaml"))
        for version in plain_yaml.load(crd.read_text())["spec"]["versions"]
        for part in ("spec", "status")
        for former in former_names(version["schema"]["openAPIV3Schema"]["properties"][part])
    ]


def overdue(version: str, names: list[str]) -> list[str]:
    """Return the former names that a version must not have any more."""
    major, minor, *_ = (int(number) for number in version.split("."))
    return names if (major, minor) > LAST else []


def test_former_names_are_gone_after_version_0_2() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert overdue(version, [name for name, _ in left()]) == [], (
        "Remove them and their rules from crds/, docs/former_names.py with its callers, "
        "tests/integration/crd/test_former_names.py, this test, and the rule in docs/design/api.md."
    )


def test_former_names_of_a_spec_are_refused_and_those_of_a_status_are_read() -> None:
    refused: dict[bool, set[bool]] = {True: set(), False: set()}
    for name, former in left():
        refused[" spec" in name].add(bool(former.refusal))
    assert refused == {True: {True}, False: {False}}


@pytest.mark.parametrize(("version", "found"), [("0.2.9", []), ("0.3.0", ["ttl"]), ("1.0.0", ["ttl"])])
def test_a_later_version_must_not_have_them(version: str, found: list[str]) -> None:
    assert overdue(version, ["ttl"]) == found
