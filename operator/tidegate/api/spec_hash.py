"""Which part of a spec makes a version, and the hash of that part. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from tidegate.api.change_classes import ChangeClass, fields_of
from tidegate.api.streaming_app import StableSpec, StreamingApp, StreamingAppSpec
from tidegate.api.values.errors import SpecError
from tidegate.api.values.plain_secrets import with_secrets, without_secrets
from tidegate.api.values.quantity import parse_quantity
from tidegate_spark.contract.protocol import store_identity
from tidegate_spark.contract.secret_shapes import REDACTED

_PARTITIONS = "state.partitions"
"""Of another class, and still part of what makes a version: what runs on one number does not run on another."""
_VERSION_FIELDS = tuple(sorted((*fields_of(ChangeClass.RESTART), _PARTITIONS)))
_PROGRAM = (
    *("application.args", "application.env", "application.image", "application.main", "application.pyFiles"),
    *("application.mainFrom.configMapKeyRef.key", "application.mainFrom.configMapKeyRef.name"),
    *("driver.podTemplate", "sparkConf"),
)
_PATHS = tuple((path, path.split(".")) for path in _VERSION_FIELDS)
_QUANTITY = ".sizeLimit"
_Fields = dict[str, Any]
"""What is read of a mapping: name -> the whole path of a field, or what is read of the mapping below."""


def _fields(paths: Iterable[str]) -> _Fields:
    fields: _Fields = {}
    for path in paths:
        within, (*steps, last) = fields, path.split(".")
        for step in steps:
            within = within.setdefault(step, {})
        within[last] = path
    return fields


_VERSION, _OF_PROGRAM = _fields(_VERSION_FIELDS), _fields(_PROGRAM)


def spec_hash(app: StreamingApp) -> str:
    """Return 16 hexadecimal digits over the fields whose change makes another version.

    Fields with their default count as absent: a later version's new field does not restart every application when the
    operator is upgraded. Resources count with what they leave out, and they and sizes by
    value, so ``1`` and ``1000m`` are the same, and so are no memory and the default.
    """
    if isinstance(app.spec, _Held):
        return app.spec.spec_hash
    wanted = restart_fields(app.spec)
    text = json.dumps(wanted, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def program_hash(spec: StreamingAppSpec) -> str:
    """Return 16 hexadecimal digits over what says what a program does and where its output goes.

    A field that is not there does not count: what was hashed before the field existed is the same now.
    """
    tree = msgspec.to_builtins(spec)
    return hashlib.sha256(json.dumps(_present(tree, _OF_PROGRAM), sort_keys=True).encode()).hexdigest()[:16]


def version_of(spec: StreamingAppSpec) -> str:
    """Return the part of a spec that makes a version, as JSON: path -> value of each field of it as written."""
    return json.dumps(_present(msgspec.to_builtins(spec), _VERSION), sort_keys=True, separators=(",", ":"))


def recorded_version(spec: StreamingAppSpec) -> str:
    """Return the part of a spec that makes a version, as it is recorded: without the secrets in it."""
    return without_secrets(version_of(spec))


def has_same_store(spec: StreamingAppSpec, stable: StableSpec) -> bool:
    """Return whether a spec names the store that a recorded version has, as far as that can be read."""
    store = store_of(stable)
    return store is None or store_identity(*store) == store_identity(spec.storage.endpoint, spec.storage.region)


def store_of(stable: StableSpec) -> tuple[str, str] | None:
    """Return endpoint and region of the store that a recorded version has, None if they cannot be read."""
    values = recorded_values(stable)
    endpoint, region = values.get("storage.endpoint"), values.get("storage.region")
    return (endpoint, region) if isinstance(endpoint, str) and isinstance(region, str) else None


def recorded_values(stable: StableSpec) -> dict[str, Any]:
    """Return path -> value of a recorded version; empty if a newer operator, or somebody's hand, wrote what it is."""
    try:
        values = json.loads(stable.spec)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


class _Held(StreamingAppSpec, frozen=True, kw_only=True, rename="camel"):
    """A recorded version with other secrets than it had: it is that version, and is not started again for them."""

    spec_hash: str


def held_version(spec: StreamingAppSpec, stable: StableSpec) -> StreamingAppSpec:
    """Return a spec with a recorded version in it, and the secrets of the spec where that has any.

    Raises:
        ValueError: it is none, or has a secret in a place that the spec has no more.
    """
    held = with_version(spec, stable.spec)
    if REDACTED not in stable.spec:
        return held
    return msgspec.convert({**msgspec.to_builtins(held), "specHash": stable.spec_hash}, _Held)


def with_version(spec: StreamingAppSpec, version: str) -> StreamingAppSpec:
    """Return a spec with another version in it; all that makes no version stays.

    Args:
        spec: the spec.
        version: what :func:`version_of` returned.

    Raises:
        ValueError: it is none, or has a secret in a place that the spec has no more.
    """
    tree, values = msgspec.to_builtins(spec), json.loads(version)
    if not isinstance(values, dict):
        raise ValueError("no version: not a mapping")
    if REDACTED in version:
        values = with_secrets(values, json.loads(version_of(spec)))
    for path, parts in _PATHS:
        if path != _PARTITIONS or path in values:  # a version that an earlier operator stored does not have it
            _set(tree, parts, values.get(path))
    return msgspec.convert(tree, StreamingAppSpec)


def restart_fields(spec: StreamingAppSpec) -> dict[str, Any]:
    """Return path -> value of the fields that make a version, and are not at their default."""
    return {path: value for path, value in _values(spec).items() if value != _DEFAULTS.get(path)}


def _values(spec: StreamingAppSpec) -> dict[str, Any]:
    found = _present(msgspec.to_builtins(spec), _VERSION)
    for role, resources in (("driver", spec.driver.resources), ("executor", spec.executor.resources)):
        whole = resources.complete
        for kind, named in (("limits", whole.limits), ("requests", whole.requests)):
            path = f"{role}.resources.{kind}"
            found[path] = {name: _canonical(path, value) for name, value in named.items()}
    return {path: _canonical(path, value) if path.endswith(_QUANTITY) else value for path, value in found.items()}


def _set(tree: dict[str, Any], parts: list[str], value: Any) -> None:
    """Set a field, or take it away if there is no value: with what is left empty then, a reference without a name."""
    head, *rest = parts
    if not rest:
        tree.pop(head, None)
        if value is not None:
            tree[head] = value
        return
    within = tree.get(head) or {}
    _set(within, rest, value)
    tree.pop(head, None)
    if within:
        tree[head] = within


def _present(tree: dict[str, Any], fields: _Fields) -> dict[str, Any]:
    """Return path -> value of those of some fields that are there: each mapping is read once."""
    found: dict[str, Any] = {}
    for name, field in fields.items():
        value = tree.get(name)
        if isinstance(field, str):
            if value is not None:
                found[field] = value
        elif isinstance(value, dict):
            found |= _present(value, field)
    return found


def _canonical(path: str, value: Any) -> str:
    try:
        return str(parse_quantity(f"spec.{path}", value).normalize())
    except SpecError:
        # Building the pod reports it; the hash does not validate.
        return str(value)


_DEFAULTS = _values(
    msgspec.convert({"application": {"image": "", "main": ""}, "storage": {"uri": ""}}, StreamingAppSpec)
)
