"""Builds the pod that releases the snapshot from which a deleted application was to start. No I/O."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.api.streaming_app import LocalReference, StreamingApp
from tidegate.pods.builders.driver_config import fork_holder
from tidegate.pods.builders.storage_pod import Errand, build_storage_pod
from tidegate.pods.records.metadata import owner_reference
from tidegate.pods.records.names import SNAPSHOT_CONTAINER, release_pod_name
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import ROLE_SNAPSHOT, Storage, to_order
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, ReleaseOrder, SnapshotOrders


def build_release_pod(app: StreamingApp, platform: Platform) -> dict[str, Any]:
    """Return the pod that says so in the catalog where the snapshot is, with what the application reached it.

    Raises:
        SpecError: no pod can be built of the application's spec.
        ValueError: the application starts from no snapshot.
    """
    began = app.status.start_from
    if began is None:
        raise ValueError(f"{app.metadata.name} starts from no snapshot")
    orders = SnapshotOrders(release=(ReleaseOrder(began.id, fork_holder(app)),))
    errand = Errand(
        pod_name=release_pod_name(app.metadata.name),
        role=ROLE_SNAPSHOT,
        container=SNAPSHOT_CONTAINER,
        module="tidegate_spark.snapshot_pod",
        owner=owner_reference(app),
        labels={},
        env={ORDERS_VARIABLE: to_order(orders)},
        place=Storage(began.uri, began.endpoint, began.region, began.path_style_access),
    )
    return build_storage_pod(_with_origins_credentials(app, began.credentials_secret_name), errand, platform)


def _with_origins_credentials(app: StreamingApp, secret: str) -> StreamingApp:
    if not secret:
        return app
    storage = msgspec.structs.replace(app.spec.storage, credentials_secret_ref=LocalReference(name=secret))
    return msgspec.structs.replace(app, spec=msgspec.structs.replace(app.spec, storage=storage))
