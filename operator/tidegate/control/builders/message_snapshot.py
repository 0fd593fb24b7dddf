"""Builds the StreamSnapshot for a snapshot that a control message asked for. No I/O.

The driver takes that snapshot itself, of exactly the batches in which the message took effect. The resource is created
when it is complete, and names its id.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.api.control_message import ControlMessage
from tidegate.api.snapshot_identity import ANNOTATION_MADE_AS, ANNOTATION_SNAPSHOT_ID, OF_MESSAGE, made_as
from tidegate.api.stream_snapshot import LABEL_OF_MESSAGE, SNAPSHOT_KIND, ExportFormat
from tidegate.api.streaming_app import API_VERSION, DeletionPolicy, StreamingApp
from tidegate_spark.contract.control_protocol import DUMP_STATE
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID, LABEL_APP, LABEL_MANAGED_BY, MANAGED_BY
from tidegate_spark.contract.snapshot_protocol import export_format

_LONGEST_NAME = 54
_EXPORT_FIELDS = ("format", "states", "cores", "resources", "timeoutSeconds")
"""Of a dump's payload, as in spec.export. The image is none of them: who may send messages may not run anything."""


def taken_id(message: ControlMessage) -> str:
    """Return the id that the driver gives to the snapshot of a message."""
    return f"{OF_MESSAGE}{message.log_id}"


def message_snapshot_name(message: ControlMessage) -> str:
    """Return the resource's name: two messages have two, whatever they are called."""
    if message.is_from_channel:
        # Not by its uid: one that somebody deletes too early is made again, and is about the same snapshot.
        return message.metadata.name
    end = f"-{message.metadata.uid.replace('-', '')[:8]}"
    return message.metadata.name.replace(".", "-")[: _LONGEST_NAME - len(end)].rstrip("-") + end


def build_message_snapshot(message: ControlMessage, app: StreamingApp) -> dict[str, Any]:
    """Return the resource of a message that had a snapshot taken.

    That of a dump goes when the message does, and the files of its snapshot with it; those of the dump stay. That of a
    snapshot is people's.
    """
    dumps = message.spec.type == DUMP_STATE
    name, namespace = message_snapshot_name(message), message.metadata.namespace
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": {LABEL_APP: app.metadata.name, LABEL_MANAGED_BY: MANAGED_BY, LABEL_OF_MESSAGE: "true"},
        "annotations": {
            ANNOTATION_APP_UID: app.metadata.uid,
            ANNOTATION_SNAPSHOT_ID: taken_id(message),
            ANNOTATION_MADE_AS: made_as(namespace, name),
        },
    }
    spec: dict[str, Any] = {"appRef": {"name": app.metadata.name}, "deletionPolicy": DeletionPolicy.RETAIN.value}
    if dumps:
        metadata["ownerReferences"] = [_owner(message)]
        spec = {
            **spec,
            "deletionPolicy": DeletionPolicy.DELETE.value,
            "export": _export(msgspec.json.decode(message.spec.payload)),
        }
    return {"apiVersion": API_VERSION, "kind": SNAPSHOT_KIND, "metadata": metadata, "spec": spec}


def _owner(message: ControlMessage) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "ControlMessage",
        "name": message.metadata.name,
        "uid": message.metadata.uid,
    }


def _export(payload: Any) -> dict[str, Any]:
    said = payload if isinstance(payload, dict) else {}
    export = {"format": ExportFormat.JSON_LINES.value, **{name: said[name] for name in _EXPORT_FIELDS if name in said}}
    return {**export, "format": _known_format(export["format"])}


def _known_format(word: Any) -> Any:
    """Return a format in the words of the API; an older runtime takes those of its time, and no others."""
    try:
        return export_format(word)
    except (ValueError, TypeError):
        return word  # which the API server refuses by name
