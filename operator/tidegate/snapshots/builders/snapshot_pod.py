"""Builds the pod that takes or disposes of a snapshot when no driver can. No I/O."""

from __future__ import annotations

import dataclasses
from typing import Any

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.spec import Helpers
from tidegate.api.stream_snapshot import SNAPSHOT_KIND, SnapshotStorage, StreamSnapshot, import_place, is_imported
from tidegate.api.streaming_app import (
    Application,
    Driver,
    LocalReference,
    Metadata,
    Resources,
    StorageSpec,
    StreamingApp,
    StreamingAppSpec,
    StreamingAppStatus,
)
from tidegate.pods import messages
from tidegate.pods.builders.cpu_limits import driver_limit
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.storage_pod import Errand, build_storage_pod, hash_of_taken
from tidegate.pods.records.metadata import reference_to
from tidegate.pods.records.names import (
    DEFAULT_ACCOUNT,
    SHARED_ACCESS_NAME,
    SNAPSHOT_CONTAINER,
    export_pod_prefix,
    snapshot_pod_name,
    verify_pod_name,
)
from tidegate.pods.records.platform import Platform
from tidegate.pods.reserved.addresses import refuse_detours
from tidegate_spark.contract.protocol import LABEL_SNAPSHOT, ROLE_SNAPSHOT, Storage, to_order
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, SnapshotOrders


def _account(storage: SnapshotStorage) -> str:
    """Return the ServiceAccount of a pod without an application.

    What Tidegate made for the application went with it. The pod mounts no token, so any account does as long as it is
    there; whoever has bound rights for the storage to one has named it.
    """
    own = storage.service_account_name
    return own if own and own != SHARED_ACCESS_NAME else DEFAULT_ACCOUNT


def storage_of(app: StreamingApp) -> SnapshotStorage:
    """Return what has to be remembered of an application to reach its storage without it."""
    place, secret = app_storage(app), app.spec.storage.credentials_secret_ref
    return SnapshotStorage(
        uri=place.uri,
        endpoint=place.endpoint,
        region=place.region,
        path_style_access=place.path_style_access,
        credentials_secret_name=secret.name if secret is not None else "",
        service_account_name=app.spec.service_account_name,
        cpu_limit=driver_limit(app) or "",
        helper_resources=app.spec.helpers.resources,
    )


def name_pod(snapshot: StreamSnapshot, orders: SnapshotOrders) -> str:
    """Return the name of the pod that carries these orders out; each kind of work has its own."""
    identity = snapshot_id(snapshot.metadata)
    if orders.export:
        return export_pod_prefix(identity) + orders.export[0].export.rpartition("-")[2]
    if orders.verify:
        return verify_pod_name(identity, snapshot.spec.verify_nonce)
    return snapshot_pod_name(identity, disposing=bool(orders.dispose or orders.release))


def storage_of_import(snapshot: StreamSnapshot) -> SnapshotStorage:
    """Return where an imported snapshot is, and how that is reached."""
    given = snapshot.spec.storage
    return SnapshotStorage(
        uri=import_place(snapshot.spec.uri)[0],
        endpoint=given.endpoint,
        region=given.region,
        path_style_access=given.path_style_access,
        credentials_secret_name=given.credentials_secret_ref.name if given.credentials_secret_ref is not None else "",
        service_account_name=snapshot.spec.service_account_name,
    )


def build_snapshot_pod(
    snapshot: StreamSnapshot, app: StreamingApp | None, orders: SnapshotOrders, platform: Platform
) -> dict[str, Any]:
    """Return the pod that carries orders about one snapshot out.

    Args:
        snapshot: the resource; its id and, if there is no application, the storage are in its status.
        app: the application whose snapshot it is; None if it is gone.
        orders: what to do.
        platform: what the installation decides.

    Raises:
        SpecError: no pod can be built of the application's spec, or an import's address leads elsewhere.
        ValueError: the application is gone and nothing was remembered of its storage.
    """
    if not (orders.dispose or orders.release):  # one that is there already can be deleted
        refuse_detours(snapshot.spec.uri, "spec.uri")
    of = app or remembered_app(snapshot)
    errand = dataclasses.replace(build_errand(snapshot, orders), made_of=hash_of_taken(of))
    return build_storage_pod(of, errand, platform)


def build_errand(snapshot: StreamSnapshot, orders: SnapshotOrders) -> Errand:
    """Return what the pod is for that carries orders about one snapshot out."""
    storage = snapshot.status.storage
    place = None
    if storage is not None and is_imported(snapshot):
        place = Storage(storage.uri, storage.endpoint, storage.region, storage.path_style_access)
    return Errand(
        pod_name=name_pod(snapshot, orders),
        role=ROLE_SNAPSHOT,
        container=SNAPSHOT_CONTAINER,
        module="tidegate_spark.snapshot_pod",
        owner=reference_to(SNAPSHOT_KIND, snapshot.metadata),
        labels={LABEL_SNAPSHOT: snapshot_id(snapshot.metadata)},
        env={ORDERS_VARIABLE: to_order(orders)},
        place=place,
    )


def remembered_app(snapshot: StreamSnapshot) -> StreamingApp:
    """Return of an application that is gone what reaches its storage; everything else of it says nothing.

    Raises:
        ValueError: nothing was remembered.
    """
    status = snapshot.status
    storage, owner = status.storage, status.app
    if storage is None or (owner is None and not is_imported(snapshot)):
        raise ValueError(messages.snapshot_place_unknown(snapshot.metadata.name))
    namespace, name = snapshot.app_key
    spec = StreamingAppSpec(
        application=Application(image="", main=""),
        storage=StorageSpec(
            uri=storage.uri.removesuffix(f"/{namespace}/{name}"),
            endpoint=storage.endpoint,
            region=storage.region,
            path_style_access=storage.path_style_access,
            credentials_secret_ref=LocalReference(name=storage.credentials_secret_name)
            if storage.credentials_secret_name
            else None,
        ),
        service_account_name=_account(storage),
        helpers=Helpers(resources=storage.helper_resources),
        driver=Driver(resources=Resources(limits={"cpu": storage.cpu_limit} if storage.cpu_limit else {})),
    )
    return StreamingApp(
        metadata=Metadata(name=name, namespace=namespace, uid=owner.uid if owner is not None else ""),
        spec=spec,
        status=StreamingAppStatus(lineage=owner.lineage if owner is not None else 0),
    )
