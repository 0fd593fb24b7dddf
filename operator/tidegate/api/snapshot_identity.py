"""The id that a StreamSnapshot gives to its snapshot. No I/O."""

from __future__ import annotations

import re

from tidegate.api.control_message import channel_message_name
from tidegate.api.stream_snapshot import StreamSnapshot, import_place, is_imported
from tidegate.api.streaming_app import Metadata
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID

OF_MESSAGE = "control-"
"""How the ids begin of snapshots that control messages have taken."""
ANNOTATION_SNAPSHOT_ID = "tidegate.dev/snapshot-id"
"""The id of a snapshot that was taken before its resource was made; none but those of control messages are."""
ANNOTATION_MADE_AS = "tidegate.dev/made-as"
"""Beside it, what :func:`made_as` returns: a copy under another name has the annotations, and not the snapshot."""
_ID_OF_MESSAGE = re.compile(OF_MESSAGE + r"[a-z0-9]([-a-z0-9]{0,53}[a-z0-9])?")


def stored_id(snapshot: StreamSnapshot) -> str:
    """Return the id of the snapshot in its storage; an imported one has it from elsewhere."""
    return import_place(snapshot.spec.uri)[1] if is_imported(snapshot) else snapshot_id(snapshot.metadata)


def snapshot_id(metadata: Metadata) -> str:
    """Return the id that a resource gives to its snapshot, pods and orders: one of its name made later is another.

    That of a control message's is the driver's; a copy of the resource has a snapshot of its own.
    """
    noted = metadata.annotations.get(ANNOTATION_SNAPSHOT_ID, "")
    if _ID_OF_MESSAGE.fullmatch(noted) and _is_made_for(metadata, noted):
        return noted
    return f"{metadata.name}-{metadata.uid.replace('-', '')[:8]}"


def made_as(namespace: str, name: str) -> str:
    """Return by what a resource is known to be the one that was made for a message's snapshot."""
    return f"{namespace}/{name}"


def _is_made_for(metadata: Metadata, identity: str) -> bool:
    """Return whether a resource is the one that was made for a message's snapshot, which may be made again."""
    noted = metadata.annotations.get(ANNOTATION_MADE_AS)
    if noted is not None:
        return noted == made_as(metadata.namespace, metadata.name)
    # Those of an earlier operator show it by their names alone.
    log_id, app_uid = identity.removeprefix(OF_MESSAGE), metadata.annotations.get(ANNOTATION_APP_UID, "")
    ends = (f"-{log_id.replace('-', '')[:8]}", channel_message_name("", app_uid, log_id))
    return metadata.name.endswith(ends)
