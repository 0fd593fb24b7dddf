"""The StreamingApp as one value, and its decoding. No I/O.

Everything a reader of StreamingApps needs is importable from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from tidegate.api import foreign_text
from tidegate.api.control_spec import ChannelSpec, ChannelType, ControlSpec
from tidegate.api.references import LocalReference
from tidegate.api.spec import (
    Application,
    AutoscalingMode,
    AutoscalingSpec,
    DeletionPolicy,
    Driver,
    Executor,
    ForkOutputs,
    RehearsalSpec,
    RepartitionSpec,
    Resources,
    Restart,
    RestartPolicy,
    RollbackPolicy,
    Runtime,
    SnapshotRetention,
    SnapshotsSpec,
    StartFromSpec,
    State,
    StorageSpec,
    StreamingAppSpec,
    Upgrade,
    UpgradeMode,
    UpgradeOffsets,
)
from tidegate.api.status.autoscaling_status import AutoscalingBasis, AutoscalingMetrics, AutoscalingStatus, LastScale
from tidegate.api.status.repartition_status import RepartitionProgress, RepartitionResult, RepartitionStatus
from tidegate.api.status.status import (
    Condition,
    DriverStatus,
    EarlierRollbackSnapshot,
    ExecutorsStatus,
    LastExit,
    LastSnapshot,
    Phase,
    QueryStatus,
    RehearsalStatus,
    RehearsedQuery,
    RestartsStatus,
    RollbackSnapshot,
    ScheduleStatus,
    SnapshotBatch,
    StableSpec,
    StartedFrom,
    StreamingAppStatus,
    UpgradePhase,
    UpgradeStatus,
    encode_status,
)
from tidegate.api.values import messages
from tidegate.api.values.bounded_json import why_cut
from tidegate.api.values.errors import SpecError, UnreadableAppError
from tidegate.api.values.quantity import Quantity
from tidegate_spark.contract.control_protocol import is_deeper

__all__ = [
    "API_VERSION",
    "GROUP",
    "KIND",
    "PLURAL",
    "VERSION",
    "Application",
    "AutoscalingBasis",
    "AutoscalingMetrics",
    "AutoscalingMode",
    "AutoscalingSpec",
    "AutoscalingStatus",
    "ChannelSpec",
    "ChannelType",
    "Condition",
    "ControlSpec",
    "DeletionPolicy",
    "Driver",
    "DriverStatus",
    "EarlierRollbackSnapshot",
    "Executor",
    "ExecutorsStatus",
    "ForkOutputs",
    "LastExit",
    "LastScale",
    "LastSnapshot",
    "LocalReference",
    "Metadata",
    "Phase",
    "Quantity",
    "QueryStatus",
    "RehearsalSpec",
    "RehearsalStatus",
    "RehearsedQuery",
    "RepartitionProgress",
    "RepartitionResult",
    "RepartitionSpec",
    "RepartitionStatus",
    "Resources",
    "Restart",
    "RestartPolicy",
    "RestartsStatus",
    "RollbackPolicy",
    "RollbackSnapshot",
    "Runtime",
    "ScheduleStatus",
    "SnapshotBatch",
    "SnapshotRetention",
    "SnapshotsSpec",
    "SpecError",
    "StableSpec",
    "StartFromSpec",
    "StartedFrom",
    "State",
    "StorageSpec",
    "StreamingApp",
    "StreamingAppSpec",
    "StreamingAppStatus",
    "UnreadableAppError",
    "Upgrade",
    "UpgradeMode",
    "UpgradeOffsets",
    "UpgradePhase",
    "UpgradeStatus",
    "decode_app",
    "encode_status",
    "own_annotations",
]

GROUP = "tidegate.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "StreamingApp"
PLURAL = "streamingapps"
_OWN = f"{GROUP}/"
_LONGEST_NOTE = 4096
"""Characters of an annotation of ours; the longest that Tidegate writes has a few hundred."""


class Metadata(Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of ObjectMeta that the operator reads."""

    name: str
    namespace: str
    uid: str
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


def own_annotations(found: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that the operator reads: anybody else's can have a quarter of a megabyte."""
    return {name: text for name, text in found.items() if name.startswith(_OWN) and len(text) <= _LONGEST_NOTE}


class StreamingApp(Struct, frozen=True, kw_only=True, rename="camel"):
    """One StreamingApp as the API server holds it."""

    metadata: Metadata
    spec: StreamingAppSpec
    status: StreamingAppStatus = StreamingAppStatus()


DEEPEST_TEMPLATE = 50
"""Levels of a pod template: a pod of Kubernetes has less than fifteen."""
MOST_IN_TEMPLATE = 10_000
"""Entries of all lists and objects of a pod template: those of a pod are hundreds."""
_json = msgspec.json.Decoder(StreamingApp)


def decode_app(body: Mapping[str, Any] | bytes) -> StreamingApp:
    """Return the StreamingApp that ``body`` holds: JSON, or what a client made of it.

    Fields that the model does not know are ignored, so that operator and CRD may differ by a version; missing ones
    have the CRD's defaults.

    Raises:
        UnreadableAppError: a field is missing or of another type; the error names it.
    """
    try:
        app = _json.decode(body) if isinstance(body, bytes) else msgspec.convert(body, StreamingApp)
    except msgspec.ValidationError as error:
        if not isinstance(body, bytes) and (cut := why_cut(body)):
            raise UnreadableAppError("", cut) from error
        raise unreadable_because(error) from error
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise UnreadableAppError("", messages.not_json(error)) from error
    _check_templates(app)
    metadata = app.metadata
    slim = msgspec.structs.replace(metadata, annotations=own_annotations(metadata.annotations), labels={})
    return msgspec.structs.replace(app, metadata=slim)


def _check_templates(app: StreamingApp) -> None:
    """Refuse pod templates that nothing could merge: templates are copied and merged level by level.

    Raises:
        UnreadableAppError: one is too deep, or was cut because it is, or has so many values that each look at it would
            hold up all other applications.
    """
    spec = app.spec
    templates = {
        "spec.podTemplate": spec.pod_template,
        "spec.driver.podTemplate": spec.driver.pod_template,
        "spec.executor.podTemplate": spec.executor.pod_template,
    }
    for name, template in templates.items():
        if template and _has_more_values(template, MOST_IN_TEMPLATE):
            raise UnreadableAppError(name, messages.too_many_values(MOST_IN_TEMPLATE))
        if template and is_deeper(template, DEEPEST_TEMPLATE):
            raise UnreadableAppError(name, messages.template_too_deep(DEEPEST_TEMPLATE))
        if template and (cut := why_cut(template)):
            raise UnreadableAppError(name, cut)


def _has_more_values(value: Any, most: int) -> bool:
    left, count = [value], 0
    while left:
        found = left.pop()
        count += len(found)
        if count > most:
            return True
        within = found.values() if isinstance(found, Mapping) else found
        left += [part for part in within if isinstance(part, (Mapping, list))]
    return False


def unreadable_because(error: Exception) -> UnreadableAppError:
    """Return what a decoder's complaint says of a resource: the field first, whatever value is repeated after it."""
    problem, path = foreign_text.split_validation_error(str(error))
    return UnreadableAppError(path, problem)
