"""The CRDs, installed; the smallest StreamingApp that the API server accepts, changes of it. Does I/O."""

import copy
from pathlib import Path
from typing import Any

from tidegate_testing.kubectl import Kubectl
from tidegate_testing.waiting import wait_for

CRDS = Path(__file__).parents[3] / "crds"
_PATIENCE = 180.0

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


def install_crds(kubectl: Kubectl) -> None:
    """Apply this checkout's CRDs, and return when the API server serves them."""
    kubectl.run("apply", "--server-side", "-f", str(CRDS))
    wait_until_served(kubectl)


def wait_until_served(kubectl: Kubectl) -> None:
    """Return when the API server serves all CRDs that it has.

    ``kubectl wait`` fails at once on one that has no conditions yet, as each has for a moment after it was made.
    """

    def are_served() -> bool:
        found = kubectl.list("customresourcedefinitions", "")
        conditions = {c["metadata"]["name"]: c.get("status", {}).get("conditions") or [] for c in found}
        met = {name: {c["type"] for c in each if c["status"] == "True"} for name, each in conditions.items()}
        assert met, "there is no CRD"
        assert all("Established" in types for types in met.values()), met
        return True

    wait_for("the CRDs to be served", are_served, _PATIENCE, 0.1)


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
