"""Builds the pod that deletes the storage of a deleted application. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.pods.builders.storage_pod import Errand, build_storage_pod
from tidegate.pods.records.metadata import owner_reference
from tidegate.pods.records.names import PURGE_CONTAINER, purge_pod_name
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import ROLE_PURGE


def build_purge_pod(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    """Return the pod that deletes the application's prefix in its bucket."""
    errand = Errand(
        pod_name=purge_pod_name(app.metadata.name),
        role=ROLE_PURGE,
        container=PURGE_CONTAINER,
        module="tidegate_spark.purge",
        owner=owner_reference(app),
        labels={},
        env={},
    )
    return build_storage_pod(app, errand, platform)
