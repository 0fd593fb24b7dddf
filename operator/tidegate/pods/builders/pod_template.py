"""Merges a user's pod template into Tidegate's pod. No I/O.

Three layers: Tidegate's defaults, over them the template, over them what Tidegate owns. Mappings are merged key by key,
with these exceptions:

- Lists whose items have an identity (containers, environment, volumes, mounts, ports, pull secrets) are joined by it;
  the identities are those of Kubernetes' server-side apply.
- Containers with the same name are merged; so the template's container ``driver`` (``executor``) is Tidegate's.
- A volume, an environment variable and a probe replace their namesake whole, because a mixture of two is invalid.
- Tolerations and other lists without an identity are concatenated without duplicates.
- A null removes a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.pods import messages

_IDENTITY: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "ownerReferences": ("uid",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
_DEFAULTS = {"protocol": "TCP"}
"""What the API server fills in: an item that says it and one that does not are the same."""
COMMON_FIELD = "spec.podTemplate"
DRIVER_FIELD, EXECUTOR_FIELD = "spec.driver.podTemplate", "spec.executor.podTemplate"
_REPLACED_LISTS = frozenset({"command", "args"})
_WHOLE = frozenset({"volumes", "env", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"})


def lay_over(below: Mapping[str, Any], above: Mapping[str, Any], field: str, *, owned: bool = False) -> dict[str, Any]:
    """Return ``above`` laid over ``below`` by the module's rule; neither is changed.

    Args:
        below: what gives way.
        above: what wins.
        field: path of the template in the spec, for errors.
        owned: what wins is Tidegate's, and what is wrong with the two is wrong below.

    Raises:
        SpecError: an item of a joined list has no identity, or a value is of another type than the one it meets.
    """
    result = dict(below)
    for key, value in above.items():
        where = f"{field}.{key}"
        if value is None:
            result.pop(key, None)
        elif key not in result or (key in _WHOLE and not isinstance(value, list)):
            result[key] = value
        else:
            result[key] = _join(key, result[key], value, where, owned)
    return result


def driver_template(app: StreamingApp) -> dict[str, Any]:
    """Return the user's template of the driver: the application's, over it the driver's own.

    Raises:
        SpecError: the two cannot be merged.
    """
    return lay_over(app.spec.pod_template, app.spec.driver.pod_template, DRIVER_FIELD)


def _join(key: str, below: Any, above: Any, where: str, owned: bool) -> Any:
    if isinstance(below, Mapping) != isinstance(above, Mapping) or isinstance(below, list) != isinstance(above, list):
        expected, found = (above, below) if owned else (below, above)
        raise SpecError(where, messages.other_kind(_kind(expected), _kind(found)))
    if isinstance(above, Mapping):
        return lay_over(below, above, where, owned=owned)
    if not isinstance(above, list) or key in _REPLACED_LISTS:
        return above
    if key in _IDENTITY:
        return _join_by_identity(key, below, above, where, owned)
    there = {_canonical(item) for item in below}
    return below + [item for item in above if _canonical(item) not in there]


def _canonical(item: Any) -> bytes:
    """Return what equal items have in common, and no others: comparing each with each takes seconds for thousands."""
    return msgspec.json.encode(item, order="sorted")


def _join_by_identity(key: str, below: list[Any], above: list[Any], where: str, owned: bool) -> list[Any]:
    joined = {_identity(key, item, where): item for item in below}
    for item in above:
        name = _identity(key, item, where)
        if name in joined and key not in _WHOLE:
            joined[name] = lay_over(joined[name], item, f"{where}[{'/'.join(map(str, name))}]", owned=owned)
        else:
            joined[name] = item
    return list(joined.values())


def _identity(key: str, item: Any, where: str) -> tuple[str | int, ...]:
    fields = item if isinstance(item, Mapping) else {}
    parts = []
    for part in _IDENTITY[key]:
        value = fields.get(part, _DEFAULTS.get(part))
        if not isinstance(value, str | int):
            raise SpecError(where, messages.item_lacks(part))
        parts.append(value)
    return tuple(parts)


def find_item(key: str, template: list[Any], item: Any) -> int | None:
    """Return which item of a template's list became this one of the pod's, None if none did.

    Args:
        key: under which the lists stand.
        template: the template's list.
        item: an item of the pod's.
    """
    name = _known_identity(key, item)
    if name is None:
        return template.index(item) if item in template else None
    return next((n for n, each in enumerate(template) if _known_identity(key, each) == name), None)


def _known_identity(key: str, item: Any) -> tuple[str | int, ...] | None:
    """Return an item's identity, None if it has none, as of a list without them: what is only in one is not joined."""
    try:
        return _identity(key, item, key) if key in _IDENTITY else None
    except SpecError:
        return None


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else messages.plain_value(type(value).__name__)
