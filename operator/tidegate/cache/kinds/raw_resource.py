"""What can be read of a resource that does not fit its model: metadata and conditions. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.api.streaming_app import Metadata, own_annotations


def metadata_of(body: Mapping[str, Any]) -> Metadata:
    """Return a resource's metadata, or as much of it as names the resource."""
    given = body.get("metadata")
    metadata: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    try:
        read = msgspec.convert(metadata, Metadata)
        return msgspec.structs.replace(read, annotations=own_annotations(read.annotations), labels={})
    except msgspec.ValidationError:
        return Metadata(
            namespace=str(metadata.get("namespace", "")),
            name=str(metadata.get("name", "")),
            uid=str(metadata.get("uid", "")),
            resource_version=str(metadata.get("resourceVersion", "")),
        )


def ready_condition(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the condition Ready as it is stored, an empty mapping if there is none."""
    status = body.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    listed = conditions if isinstance(conditions, list) else []
    return next((c for c in listed if isinstance(c, Mapping) and c.get("type") == "Ready"), {})
