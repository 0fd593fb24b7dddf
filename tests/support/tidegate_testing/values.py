"""StreamingApps as values, for tests of pure functions. Pure."""

import copy
from collections.abc import Mapping
from typing import Any

from tidegate.api.streaming_app import StreamingApp, decode_app

SMALLEST: dict[str, Any] = {
    "metadata": {"name": "orders", "namespace": "shop", "uid": "u-1", "generation": 1, "resourceVersion": "7"},
    "spec": {
        "application": {"image": "shop/orders:1", "main": "local:///opt/app/main.py"},
        "storage": {"uri": "s3://streams/apps"},
    },
}


def body(change: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the smallest resource with fields of its spec set: dotted path below spec -> value."""
    resource = copy.deepcopy(SMALLEST)
    for path, value in (change or {}).items():
        *parents, leaf = path.split(".")
        node = resource["spec"]
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    return resource


def app(change: Mapping[str, Any] | None = None) -> StreamingApp:
    """Return :func:`body` decoded."""
    return decode_app(body(change))
