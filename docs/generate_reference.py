"""Write docs/reference/ from the CRDs and the table of change classes; with ``--check`` say what differs instead.

The table itself is published as an annotation of the CRD. Reads and writes files of the checkout.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from docs.former_names import without_former_names
from tidegate.api.change_classes import CHANGE_CLASSES, ChangeClass

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "crds" / "streamingapps.tidegate.dev.yaml"
TARGET = ROOT / "docs" / "reference" / "streamingapp.md"
SNAPSHOT_SOURCE = ROOT / "crds" / "streamsnapshots.tidegate.dev.yaml"
SNAPSHOT_TARGET = ROOT / "docs" / "reference" / "streamsnapshot.md"
MESSAGE_SOURCE = ROOT / "crds" / "controlmessages.tidegate.dev.yaml"
MESSAGE_TARGET = ROOT / "docs" / "reference" / "controlmessage.md"
ANNOTATION = "tidegate.dev/change-classes"

_INTRODUCTION = """\
# {kind}

Generated from `{source}` by `make generate`; `kubectl explain {short}.spec` shows the same descriptions.

`apiVersion: {group}/{version}`, `kind: {kind}`, short name `{short}`.

{description}
"""
_CLASSES = """\
What an edit does to a running application is its *class*:

| Class | What happens |
|---|---|
| None | Nothing now; the value is used by the next decision or launch that needs it. |
| Live | Applied to the running application, without a restart. |
| Restart | The driver stops at a batch boundary and starts again on the same state. |
| StateMigration | Needs other state. `state.partitions`: an upgrade that repartitions it. All others are refused. |
"""
_REQUIRED = "Fields marked with * are required.\n"


@dataclass(frozen=True)
class Field:
    """One field of the schema: its path below ``spec`` or ``status``, its schema, and whether it is required."""

    path: str
    schema: Mapping[str, Any]
    required: bool


def published(classes: Mapping[str, ChangeClass]) -> str:
    """Return the annotation's value: compact JSON, class -> sorted paths below spec; pure."""
    by_class = {kind.value: sorted(p for p, of in classes.items() if of is kind) for kind in ChangeClass}
    return json.dumps(by_class, separators=(",", ":"))


def walk(schema: Mapping[str, Any], prefix: str = "") -> Iterator[Field]:
    """Yield every field below ``schema`` in its order, parents first; pure."""
    required = schema.get("required", [])
    for name, child in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield Field(path, child, name in required)
        yield from walk(child, f"{path}.")
        if child.get("type") == "array":
            yield from walk(child["items"], f"{path}[].")


def rules(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the messages of every rule in and below ``schema``; pure."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield rule["message"]
    for child in schema.get("properties", {}).values():
        yield from rules(child)
    if schema.get("type") == "array":
        yield from rules(schema["items"])


def change_class(path: str, classes: Mapping[str, ChangeClass]) -> str:
    """Return the class of a field or of the field it is part of; empty for groups of several classes; pure."""
    for known, kind in classes.items():
        if path == known or path.startswith((f"{known}.", f"{known}[")):
            return kind.value
    return ""


def type_of(schema: Mapping[str, Any]) -> str:
    """Return a field's type in words, with its limits; pure."""
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    if "type" not in schema:
        return "any JSON"
    if "enum" in schema:
        return " \\| ".join(schema["enum"])
    kind = str(schema["type"])
    if kind == "array":
        return f"list of {type_of(schema['items'])}"
    if kind == "object" and "additionalProperties" in schema:
        return f"map of {type_of(schema['additionalProperties'])}"
    return "time" if schema.get("format") == "date-time" else kind + _limits(schema)


def _limits(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return ""
    return f", at least {low}" if high is None else f", {low} to {high}"


def render(crd: Mapping[str, Any], classes: Mapping[str, ChangeClass], source: Path = SOURCE) -> str:
    """Return the page; without classes, that of a resource with nothing that runs; pure."""
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]
    root = without_former_names(version["schema"]["openAPIV3Schema"])
    parts = [
        _INTRODUCTION.format(
            source=source.relative_to(ROOT),
            group=crd["spec"]["group"],
            version=version["name"],
            kind=names["kind"],
            short=names["shortNames"][0],
            description=root["description"],
        ),
        *([_CLASSES] if classes else []),
        _REQUIRED,
    ]
    parts.append(_bullets(rule["message"] for rule in root["x-kubernetes-validations"]))
    spec = root["properties"]["spec"]
    for name, schema in spec["properties"].items():
        parts.append(_group(Field(name, schema, name in spec.get("required", [])), classes))
    if "x-kubernetes-validations" in spec:
        parts.append("## Rules over several groups\n")
        parts.append(_bullets(rule["message"] for rule in spec["x-kubernetes-validations"]))
    parts.append(_status(root["properties"]["status"], version["additionalPrinterColumns"]))
    return "\n".join(parts)


def _group(group: Field, classes: Mapping[str, ChangeClass]) -> str:
    fields = [*walk(group.schema, f"{group.path}.")] or [group]
    rows = [
        f"| `{f.path}`{'*' if f.required else ''} | {type_of(f.schema)} | {_default(f.schema)} "
        + (f"| {change_class(f.path, classes)} " if classes else "")
        + f"| {f.schema['description']} |"
        for f in fields
    ]
    heading = ["| Field | Type | Default | Class | |", "|---|---|---|---|---|"]
    if not classes:
        heading = ["| Field | Type | Default | |", "|---|---|---|---|"]
    table = "\n".join([*heading, *rows])
    messages = _bullets(rules(group.schema))
    refusals = f"\nWhat the API server refuses, with these messages:\n\n{messages}" if messages else ""
    return (
        f"## spec.{group.path}{'*' if group.required else ''}\n\n{group.schema['description']}\n\n{table}\n{refusals}"
    )


def _status(status: Mapping[str, Any], columns: list[Mapping[str, Any]]) -> str:
    rows = [f"| `{f.path}` | {type_of(f.schema)} | {f.schema['description']} |" for f in walk(status)]
    table = "\n".join(["| Field | Type | |", "|---|---|---|", *rows])
    shown = [
        f"| {c['name']}{' (wide)' if c.get('priority') else ''} | `{c['jsonPath']}` | {c.get('description', '')} |"
        for c in columns
    ]
    heading = ["| Column | From | |", "|---|---|---|"]
    return "\n".join(
        [f"## status\n\n{status['description']}\n\n{table}\n", "## Columns of kubectl get\n", *heading, *shown, ""]
    )


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default", "")
    text = json.dumps(default) if isinstance(default, bool | dict | list) else default
    return "" if default in ("", {}) else f"`{text}`"


def _bullets(lines: Iterable[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def main(arguments: list[str]) -> int:
    """Write, or check; return the exit code: 0, or 1 if something differs."""
    parser = argparse.ArgumentParser(description="Write docs/reference/ from crds/.")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if the page or the annotation differ"
    )
    check = parser.parse_args(arguments).check
    apps = yaml.safe_load(SOURCE.read_text())
    snapshots = yaml.safe_load(SNAPSHOT_SOURCE.read_text())
    messages = yaml.safe_load(MESSAGE_SOURCE.read_text())
    pages = {
        TARGET: render(apps, CHANGE_CLASSES),
        SNAPSHOT_TARGET: render(snapshots, {}, SNAPSHOT_SOURCE),
        MESSAGE_TARGET: render(messages, {}, MESSAGE_SOURCE),
    }
    line = f"{ANNOTATION}: '{published(CHANGE_CLASSES)}'"
    pages[SOURCE] = re.sub(f"^( +){re.escape(ANNOTATION)}: .*$", rf"\1{line}", SOURCE.read_text(), flags=re.MULTILINE)
    problems = []
    for target, page in pages.items():
        if not check:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page)
        elif not target.exists() or target.read_text() != page:
            problems.append(f"{target.relative_to(ROOT)} differs: run `make generate` and commit what it writes")
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
