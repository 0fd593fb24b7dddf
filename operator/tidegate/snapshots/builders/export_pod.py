"""Builds the pod that exports a snapshot's state: in a Spark image, with the application's identity. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.api.snapshot_identity import snapshot_id, stored_id
from tidegate.api.spec import Resources, ScratchVolume
from tidegate.api.stream_snapshot import ExportSpec, StreamSnapshot, is_imported
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.pods import messages
from tidegate.pods.builders import pod_parts
from tidegate.pods.builders.cpu_limits import limited_as_driver
from tidegate.pods.builders.helper_containers import of_pod, raised_resources
from tidegate.pods.builders.storage_pod import SparkContainer, build_storage_pod, hash_of_taken
from tidegate.pods.records.names import EXPORT_CONTAINER
from tidegate.pods.records.platform import Platform
from tidegate.pods.spark.memory import split_memory
from tidegate.snapshots.builders.snapshot_pod import build_errand, remembered_app
from tidegate_spark.contract.protocol import ROLE_EXPORT
from tidegate_spark.contract.snapshot_protocol import ExportOrder, SnapshotOrders, StateChoice

_DISK = "ephemeral-storage"
_STATE_SETTINGS = ("spark.sql.streaming.stateStore.", "spark.io.compression.")
"""How Spark settings begin without which state may not be read that was written with them."""


def image_of(snapshot: StreamSnapshot, app: StreamingApp | None) -> str:
    """Return the image that an export runs in, empty if none is known, or none may run.

    The one that wrote the state comes before the one that the application has by now. Of an imported snapshot only the
    manifest names that one, and whoever can write to its bucket writes that.
    """
    asked = snapshot.spec.export.image if snapshot.spec.export is not None else ""
    if is_imported(snapshot):
        return asked
    return asked or snapshot.status.image or (app.spec.application.image if app is not None else "")


def build_order(snapshot: StreamSnapshot, app: StreamingApp | None) -> ExportOrder:
    """Return the pod's order.

    Raises:
        SpecError: the memory does not do for Spark, or no image is known.
        ValueError: nobody asks for an export.
    """
    asked = _asked(snapshot)
    if not image_of(snapshot, app):
        named = snapshot.status.image
        raise SpecError("spec.export.image", messages.image_of_import(named) if named else messages.IMAGE_UNKNOWN)
    identity = snapshot_id(snapshot.metadata)
    try:
        heap = split_memory("driver", asked.resources.memory, {}).heap_mib
    except SpecError as error:
        raise SpecError("spec.export.resources.requests.memory", error.remedy) from error
    return ExportOrder(
        id=identity,
        snapshot=stored_id(snapshot),
        export=f"{identity}-{asked.nonce}",
        format=asked.format.value,
        states=tuple(StateChoice(each.query, each.operator, each.name) for each in asked.states),
        cores=asked.cores,
        heap_mib=heap,
        spark_conf=_state_settings(app),
    )


def build_export_pod(snapshot: StreamSnapshot, app: StreamingApp | None, platform: Platform) -> dict[str, Any]:
    """Return the pod.

    Args:
        snapshot: the resource; its id and where it is are in its status.
        app: the application whose snapshot it is; None if it is gone, or was never here.
        platform: what the installation decides.

    Raises:
        SpecError: no pod can be built.
        ValueError: nobody asks for an export, or nothing is known of the storage.
    """
    asked, image = _asked(snapshot), image_of(snapshot, app)
    errand = build_errand(snapshot, SnapshotOrders(export=(build_order(snapshot, app),)))
    of = app or remembered_app(snapshot)
    resources = raised_resources(limited_as_driver(of, asked.resources), of_pod(platform.floors))
    requirements = pod_parts.resource_requirements("export", resources)
    spark = SparkContainer(image, _pull_policy(app), requirements, asked.timeout_seconds)
    errand = dataclasses.replace(
        errand, role=ROLE_EXPORT, container=EXPORT_CONTAINER, spark=spark, made_of=hash_of_export(snapshot, of)
    )
    return build_storage_pod(_with_disk(of, asked.resources), errand, platform)


def _with_disk(app: StreamingApp, resources: Resources) -> StreamingApp:
    """Return the application with a volume for work that holds what the export asks for, if that is more.

    The application's may be gone, and each of its executors has a part of the state that one export has as a whole.
    """
    scratch = app.spec.scratch
    size = scratch.work.size_limit
    for wanted in (resources.requests.get(_DISK), resources.limits.get(_DISK)):
        if wanted is not None and _is_more(wanted, size):
            size = wanted
    scratch = msgspec.structs.replace(scratch, work=ScratchVolume(size_limit=size))
    return msgspec.structs.replace(app, spec=msgspec.structs.replace(app.spec, scratch=scratch))


def _is_more(size: str | int, known: str | int) -> bool:
    try:
        return parse_quantity(_DISK, size) > parse_quantity(_DISK, known)
    except SpecError:
        return False  # the API server says which is no quantity


def hash_of_export(snapshot: StreamSnapshot, app: StreamingApp) -> str:
    """Return 16 hexadecimal digits over what the pod takes of the application."""
    return hash_of_taken(app, image_of(snapshot, app), _pull_policy(app), _state_settings(app))


def _pull_policy(app: StreamingApp | None) -> str:
    return app.spec.application.image_pull_policy if app is not None else "IfNotPresent"


def _state_settings(app: StreamingApp | None) -> dict[str, str]:
    conf: Mapping[str, str] = app.spec.spark_conf if app is not None else {}
    return {key: value for key, value in sorted(conf.items()) if key.startswith(_STATE_SETTINGS)}


def _asked(snapshot: StreamSnapshot) -> ExportSpec:
    if snapshot.spec.export is None:
        raise ValueError(f"no export of {snapshot.metadata.name} is asked for")
    return snapshot.spec.export
