"""The smallest StreamingApp that the API server accepts, changes of it, and how it is created. Does I/O."""

import copy
from typing import Any

from tidegate_testing.kubectl import Kubectl

MINIMAL: dict[str, Any] = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "StreamingApp",
    "metadata": {"name": "app"},
    "spec": {
        "application": {"image": "example/app:1", "main": "local:///opt/app/main.py"},
        "storage": {"uri": "s3://streams/apps"},
    },
}

REMOVED: Any = object()
"""The value that takes a field away."""


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the minimal app with the field at ``path`` (``spec/state/partitions``) set, or taken away."""
    app = copy.deepcopy(MINIMAL)
    *parents, leaf = path.split("/")
    node = app
    for parent in parents:
        node = node.setdefault(parent, {})
    if value is REMOVED:
        del node[leaf]
    else:
        node[leaf] = value
    return app


def create(kubectl: Kubectl, namespace: str, app: dict[str, Any]) -> dict[str, Any]:
    """Create an application and return it as stored; raise KubectlError if the API server refuses it."""
    return kubectl.create(app, namespace)
