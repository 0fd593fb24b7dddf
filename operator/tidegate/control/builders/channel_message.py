"""Builds the ControlMessage for a channel's message that needs the operator. No I/O.

What is known of the message comes from the application's own process, and from whoever may write to the channel.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.api.control_message import (
    ANNOTATION_EVENT,
    ANNOTATION_LOGGED_AS,
    ANNOTATION_SOURCE,
    CONTROL_KIND,
    LABEL_CHANNEL,
    channel_message_name,
)
from tidegate.api.streaming_app import API_VERSION, ChannelType, StreamingApp
from tidegate_spark.contract.control_protocol import DUMP_STATE, AskedMessage
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID, LABEL_APP, LABEL_MANAGED_BY, MANAGED_BY

LONGEST_WORD = 512
_CHANNELS = {"kafka": ChannelType.KAFKA, "rabbitmq": ChannelType.RABBITMQ, "storage": ChannelType.STORAGE}
"""By how origins begin (see tidegate_spark.control.channels)."""


def build_channel_message(asked: AskedMessage, app: StreamingApp) -> dict[str, Any]:
    """Return the resource; nothing owns it, as nothing owns those that people make."""
    metadata = {
        "name": channel_message_name(app.metadata.name, app.metadata.uid, asked.report.id),
        "namespace": app.metadata.namespace,
        "labels": {
            LABEL_APP: app.metadata.name,
            LABEL_MANAGED_BY: MANAGED_BY,
            LABEL_CHANNEL: _channel(asked.origin),
        },
        "annotations": {
            ANNOTATION_APP_UID: app.metadata.uid,
            ANNOTATION_LOGGED_AS: asked.report.id,
            ANNOTATION_SOURCE: _shown(asked.source),
            ANNOTATION_EVENT: _shown(asked.event),
        },
    }
    spec: dict[str, Any] = {"appRef": {"name": app.metadata.name}, "type": asked.type}
    payload = _payload(asked.payload) if asked.type == DUMP_STATE else None
    if payload is not None:
        spec["payload"] = payload
    return {"apiVersion": API_VERSION, "kind": CONTROL_KIND, "metadata": metadata, "spec": spec}


def _channel(origin: str) -> str:
    known = _CHANNELS.get(origin.partition(":")[0])
    return known.value if known is not None else "Unknown"


def _shown(text: str) -> str:
    """Return what a terminal can be shown."""
    return "".join(each if each.isprintable() else "?" for each in text[:LONGEST_WORD])


def _payload(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
