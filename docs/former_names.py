"""Fields of the CRDs that have another name by now: the API server refuses them, and names the new one. Pure.

They are part of the schema, because the API server only says "unknown field" of one that is not. Nothing else knows
them: references and models are without. They go after version 0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DESCRIPTION = "Former name of "
REFUSAL = " has another name: use "


@dataclass(frozen=True)
class FormerName:
    """A field's path below ``spec`` as it was, with ``[]`` after a list; its schema; what its refusal says."""

    path: str
    schema: Mapping[str, Any]
    refusal: str


def is_former(schema: Mapping[str, Any]) -> bool:
    """Return whether this is the schema of a former name."""
    return str(schema.get("description", "")).startswith(DESCRIPTION)


def former_names(schema: Mapping[str, Any], prefix: str = "") -> Iterator[FormerName]:
    """Yield every former name below a schema.

    Raises:
        StopIteration: a former name has no refusal beside it.
    """
    for name, child in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        if is_former(child):
            said = (rule for rule in schema["x-kubernetes-validations"] if rule["rule"] == f"!has(self.{name})")
            yield FormerName(path, child, next(said)["message"])
        elif "items" in child:
            yield from former_names(child["items"], f"{path}[].")
        else:
            yield from former_names(child, f"{path}.")


def without_former_names(schema: Any) -> Any:
    """Return a schema as it is for whoever writes manifests now."""
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
    if found.get("x-kubernetes-validations") == []:
        del found["x-kubernetes-validations"]
    return found
