"""Builds the ServiceAccount, Role and RoleBinding with which an application's driver acts in its namespace. No I/O.

The application owns them, so the garbage collector removes them after its finalizer, and so after the purge pods.
"""

from __future__ import annotations

from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.pods.records.metadata import labels, owner_reference
from tidegate.pods.records.names import access_name

DRIVER_RULES: tuple[dict[str, Any], ...] = (
    {
        "apiGroups": [""],
        "resources": ["pods"],
        # Spark's Kubernetes backend reads its own pod, creates executors, watches and lists them, deletes single ones
        # by name, and those of a label at its end. ConfigMaps, Services and PersistentVolumeClaims are not touched
        # with the defaults of tidegate.pods.spark.settings. RBAC knows no labels and no owners: that these are the
        # driver's own executors alone, the chart's admission policy sees to, if it is switched on.
        "verbs": ["get", "list", "watch", "create", "delete", "deletecollection"],
    },
)


def build_service_account(app: StreamingApp) -> dict[str, Any]:
    """Return the ServiceAccount of an application's pods."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(app)}


def build_role(app: StreamingApp) -> dict[str, Any]:
    """Return the Role with what Spark needs and no more."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _metadata(app),
        "rules": [dict(rule) for rule in DRIVER_RULES],
    }


def build_role_binding(app: StreamingApp) -> dict[str, Any]:
    """Return the RoleBinding between the two."""
    name, namespace = access_name(app.metadata.name), app.metadata.namespace
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(app),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def build_access(app: StreamingApp) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return ServiceAccount, Role and RoleBinding, in the order in which they are made."""
    return build_service_account(app), build_role(app), build_role_binding(app)


def _metadata(app: StreamingApp) -> dict[str, Any]:
    return {
        "name": access_name(app.metadata.name),
        "namespace": app.metadata.namespace,
        "labels": labels(app.metadata.name),
        "ownerReferences": [owner_reference(app)],
    }
