"""An object of each kind that has every field of its CRD, made from the schema. Reads the CRDs.

Rules that fields make together are not looked at: it is what a decoder may meet, and not what the API server accepts.
"""

from typing import Any

from tidegate_testing import plain_yaml
from tidegate_testing.crd import CRDS

_TIME = "2026-01-01T00:00:00Z"


def whole_parts(kind: str) -> dict[str, Any]:
    """Return spec and status of a kind with every field that there is; lists and maps have one entry."""
    crds = [plain_yaml.load(path.read_text(encoding="utf-8")) for path in sorted(CRDS.glob("*.yaml"))]
    (crd,) = (each for each in crds if each["spec"]["names"]["kind"] == kind)
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return {part: _value(fields[part]) for part in ("spec", "status")}


def _value(schema: dict[str, Any]) -> Any:
    if schema.get("type") == "object":
        return _object(schema)
    if schema.get("type") == "array":
        return [_value(schema["items"])]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return "1"
    if schema.get("format") == "date-time":
        return _TIME
    plain = {"integer": 1, "number": 1, "boolean": True}.get(schema.get("type", ""), "x")
    return schema.get("default", schema.get("minimum", plain))


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    found = {name: _value(part) for name, part in schema.get("properties", {}).items()}
    if isinstance(entries := schema.get("additionalProperties"), dict):
        found["a"] = _value(entries)
    return found
