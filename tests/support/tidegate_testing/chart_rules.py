"""What the chart grants the operator, read from its templates without Helm. Reads files of the checkout."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

TEMPLATES = Path(__file__).parents[3] / "charts" / "tidegate" / "templates"

Grant = tuple[str, str, str]
"""API group, resource, verb."""


def rules_of(definition: str) -> list[dict[str, Any]]:
    """Return the rules in one ``define`` block; they are YAML, with template syntax only in quoted names."""
    text = (TEMPLATES / "_rules.tpl").read_text()
    block = re.search(rf'define "{re.escape(definition)}" -}}}}\n(.*?)\n{{{{- end', text, re.DOTALL)
    if block is None:
        raise LookupError(f"{definition} is not in _rules.tpl")
    rules: list[dict[str, Any]] = yaml.safe_load(block[1])
    return rules


def grants(rules: Iterable[Mapping[str, Any]]) -> set[Grant]:
    """Return what rules grant, one by one."""
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def grant_for(method: str, path: str) -> Grant:
    """Return what a request of a namespace, or of all of them, has to be granted."""
    bare, _, query = path.partition("?")
    parts = bare.strip("/").split("/")
    group = "" if parts[0] == "api" else parts[1]
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[0] == "namespaces":
        rest = rest[2:]
    resource = "/".join(filter(None, (rest[0], *rest[2:])))
    verbs = {"POST": "create", "PATCH": "patch", "PUT": "update"}
    if method == "GET":
        verb = "get" if len(rest) > 1 else "watch" if "watch=" in query else "list"
    elif method == "DELETE":
        verb = "delete" if len(rest) > 1 else "deletecollection"
    else:
        verb = verbs[method]
    return group, resource, verb
