"""Labels, annotations and owners of an application's objects. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.api.streaming_app import API_VERSION, KIND, Metadata, StreamingApp
from tidegate_spark.contract.protocol import (
    LABEL_APP,
    LABEL_EPOCH,
    LABEL_MANAGED_BY,
    LABEL_ROLE,
    MANAGED_BY,
    ROLE_DRIVER,
    ROLE_EXECUTOR,
    ROLE_REPARTITION,
)

_OF_AN_EPOCH = frozenset({ROLE_DRIVER, ROLE_EXECUTOR, ROLE_REPARTITION})


def labels(app_name: str, role: str = "", epoch: int | None = None) -> dict[str, str]:
    """Return the labels of one of the application's objects; only pods have a role, and only runs have an epoch."""
    found = {LABEL_APP: app_name, LABEL_MANAGED_BY: MANAGED_BY}
    if role:
        found[LABEL_ROLE] = role
    if epoch is not None:
        found[LABEL_EPOCH] = str(epoch)
    return found


def labels_of_pod(app_name: str, role: str, epoch: int) -> dict[str, str]:
    """Return the labels that an application's pod was given, by what nobody can change in it."""
    return labels(app_name, role, epoch if role in _OF_AN_EPOCH else None)


def executor_selector(app_name: str) -> str:
    """Return the label selector of the application's executors, for the scale subresource."""
    return f"{LABEL_APP}={app_name},{LABEL_ROLE}={ROLE_EXECUTOR}"


def owner_reference(app: StreamingApp) -> dict[str, Any]:
    """Return the reference by which Kubernetes removes an object together with its application."""
    return reference_to(KIND, app.metadata)


def reference_to(kind: str, owner: Metadata) -> dict[str, Any]:
    """Return the reference by which Kubernetes removes an object together with one of our resources.

    It does not block the owner's deletion: that would need a permission on finalizers and buy nothing.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
