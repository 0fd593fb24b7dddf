"""Fields of the CRDs that were renamed: the API server refuses them, and names the new one. Pure.

They are part of the schema, because the API server only says "unknown field" of one that is not. Nothing else knows
them: references and models are without. Former names in a status are refused by nobody: the model reads what an earlier
operator wrote, which the API server would drop if they were not in the schema. They go after version 0.2:
tests/unit/docs/test_former_names.py fails then, and says what goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DESCRIPTION = "Former name of "
REFUSAL = " was renamed: use "
_EITHER_NAME = re.compile(r"has\(self\.(\w+)\) \|\| has\(self\.(\w+)\)")
"""Rule of a required field that has a former name: with ``required``, nobody would see the new one."""


@dataclass(frozen=True)
class FormerName:
    """A field's path below ``spec`` or ``status`` as it was, with ``[]`` after a list; its schema; its refusal's words.

    The refusal is empty where nobody refuses the name: in a status.
    """

    path: str
    schema: Mapping[str, Any]
    refusal: str


def is_former(schema: Mapping[str, Any]) -> bool:
    """Return whether this is the schema of a former name."""
    return str(schema.get("description", "")).startswith(DESCRIPTION)


def former_names(schema: Mapping[str, Any], prefix: str = "") -> Iterator[FormerName]:
    """Yield every former name below a schema."""
    for name, child in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        if is_former(child):
            rules = schema.get("x-kubernetes-validations", ())
            said = (rule["message"] for rule in rules if rule["rule"] == f"!has(self.{name})")
            yield FormerName(path, child, next(said, ""))
        elif "items" in child:
            yield from former_names(child["items"], f"{path}[].")
        else:
            yield from former_names(child, f"{path}.")


def without_former_names(schema: Any) -> Any:
    """Return a schema as it is for whoever writes manifests now.

    A field that is required, unless its former name is there, is required.
    """
    if isinstance(schema, list):
        return [
            without_former_names(part)
            for part in schema
            if not (isinstance(part, dict) and REFUSAL in str(part.get("message", "")))
        ]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: without_former_names(part)
        for name, part in schema.items()
        if not (isinstance(part, dict) and is_former(part))
    }
    if required := _required_but_for_old_names(schema):
        found["required"] = sorted({*found.get("required", ()), *required})
    if found.get("x-kubernetes-validations") == []:
        del found["x-kubernetes-validations"]
    return found


def _required_but_for_old_names(schema: Mapping[str, Any]) -> set[str]:
    fields = schema.get("properties", {})
    rules = schema.get("x-kubernetes-validations", ())
    found = (_EITHER_NAME.fullmatch(str(rule["rule"])) for rule in rules if isinstance(rule, dict) and "rule" in rule)
    return {match[1] for match in found if match is not None and is_former(fields.get(match[2], {}))}
