"""The API paths of the objects that the operator uses. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.api.control_message import CONTROL_KIND, CONTROL_PLURAL
from tidegate.api.stream_snapshot import SNAPSHOT_KIND, SNAPSHOT_PLURAL
from tidegate.api.streaming_app import API_VERSION, KIND, PLURAL

_BY_KIND = {
    "Pod": ("/api/v1", "pods"),
    "Secret": ("/api/v1", "secrets"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "Event": ("/api/v1", "events"),
    "LimitRange": ("/api/v1", "limitranges"),
    "ResourceQuota": ("/api/v1", "resourcequotas"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    KIND: (f"/apis/{API_VERSION}", PLURAL),
    SNAPSHOT_KIND: (f"/apis/{API_VERSION}", SNAPSHOT_PLURAL),
    CONTROL_KIND: (f"/apis/{API_VERSION}", CONTROL_PLURAL),
}
GROUP_PATH = f"/apis/{API_VERSION}"


def collection(kind: str, namespace: str = "") -> str:
    """Return the path of a kind's collection; without a namespace, of all namespaces."""
    root, plural = _BY_KIND[kind]
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def item(kind: str, namespace: str, name: str) -> str:
    """Return the path of one object."""
    return f"{collection(kind, namespace)}/{name}"


def path_of(manifest: dict[str, Any]) -> str:
    """Return the path of the object a manifest describes."""
    return item(manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"])


def collection_of(manifest: dict[str, Any]) -> str:
    """Return the path to create a manifest's object at."""
    return collection(manifest["kind"], manifest["metadata"]["namespace"])
