"""What a driver may do in its namespace: ServiceAccount, Role and RoleBinding, one of each. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.resources.names import ACCESS_NAME
from tidegate_spark.protocol import LABEL_MANAGED_BY, MANAGED_BY

DRIVER_RULES: tuple[dict[str, Any], ...] = (
    {
        "apiGroups": [""],
        "resources": ["pods"],
        # Spark's Kubernetes backend reads its own pod, creates executors, watches and lists them, deletes single ones
        # by name, and those of a label at its end. ConfigMaps, Services and PersistentVolumeClaims are not touched
        # with the defaults of tidegate.spark.settings.
        "verbs": ["get", "list", "watch", "create", "delete", "deletecollection"],
    },
)


def build_service_account(namespace: str) -> dict[str, Any]:
    """Return the ServiceAccount that the drivers of a namespace share."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(namespace)}


def build_role(namespace: str) -> dict[str, Any]:
    """Return the Role with what Spark needs and no more."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _metadata(namespace),
        "rules": [dict(rule) for rule in DRIVER_RULES],
    }


def build_role_binding(namespace: str) -> dict[str, Any]:
    """Return the RoleBinding between the two."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCESS_NAME},
        "subjects": [{"kind": "ServiceAccount", "name": ACCESS_NAME, "namespace": namespace}],
    }


def build_access(namespace: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return ServiceAccount, Role and RoleBinding, in the order in which they are made."""
    return build_service_account(namespace), build_role(namespace), build_role_binding(namespace)


def _metadata(namespace: str) -> dict[str, Any]:
    return {"name": ACCESS_NAME, "namespace": namespace, "labels": {LABEL_MANAGED_BY: MANAGED_BY}}
