"""The ControlMessage as one value, and its decoding. No I/O."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from tidegate.api.references import LocalReference
from tidegate.api.status.bounds import within_bounds
from tidegate.api.status.status import Condition
from tidegate.api.streaming_app import Metadata, unreadable_because
from tidegate_spark.contract.control_protocol import CLUSTER_TYPES, DEEPEST_PAYLOAD, LARGEST_PAYLOAD, is_deeper
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID

CONTROL_KIND = "ControlMessage"
CONTROL_PLURAL = "controlmessages"

APPLIED = "Applied"
"""Type of the condition that people wait for."""

LABEL_CHANNEL = "tidegate.dev/channel"
ANNOTATION_LOGGED_AS = "tidegate.dev/logged-as"
ANNOTATION_SOURCE, ANNOTATION_EVENT = "tidegate.dev/event-source", "tidegate.dev/event-id"
"""On a message from a channel: which channel, the id under which its driver reports it, and its sender's id."""
_LOGGED_AS = re.compile("[0-9a-f]{32}")


class MessagePhase(StrEnum):
    """One word for how far a message is."""

    PENDING = "Pending"
    PUBLISHED = "Published"
    APPLIED = "Applied"
    FAILED = "Failed"
    EXPIRED = "Expired"


FINAL = frozenset({MessagePhase.APPLIED, MessagePhase.FAILED, MessagePhase.EXPIRED})
"""Nothing more comes of a message in one of these."""


class ControlMessageSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the sender wants; it never changes."""

    app_ref: LocalReference
    type: str
    payload: msgspec.Raw = msgspec.Raw(b"null")
    """Compact JSON, as a driver is given it: not decoded until it is needed, because anybody may have sent it."""
    expiration_seconds: int = 0


class MessageQuery(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What one query says of the message; ``applied`` of ``ran`` are workers."""

    name: str
    batch_id: int | None = None
    applied: int = 0
    ran: int = 0
    errors: tuple[str, ...] = ()
    more_errors: int = 0
    missing: tuple[str, ...] = ()


class MessageOrigin(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where a message came from that is none of a person's: a channel, and the event's source and id there."""

    channel: str
    source: str = ""
    id: str = ""


class ControlMessageStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the operator did about it and what the driver reported.

    ``order``, ``app_uid`` and ``offered_time`` are written before anything is sent: the first says where it stands
    among those of the same second, the last that only the application's log knows the rest. ``batch`` and ``acks``
    sum the queries up for the columns of ``kubectl get``.
    """

    phase: MessagePhase | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    order: str = ""
    app_uid: str = ""
    origin: MessageOrigin | None = None
    offered_time: datetime | None = None
    expiration_time: datetime | None = None
    sequence: int = 0
    published_time: datetime | None = None
    completion_time: datetime | None = None
    queries: tuple[MessageQuery, ...] = ()
    batch: int | None = None
    acks: str = ""
    results: dict[str, str] = msgspec.field(default_factory=dict)

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this type, None if there is none."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class ControlMessage(Struct, frozen=True, kw_only=True, rename="camel"):
    """One ControlMessage as the API server holds it."""

    metadata: Metadata
    spec: ControlMessageSpec
    status: ControlMessageStatus = ControlMessageStatus()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def app_key(self) -> tuple[str, str]:
        """Namespace and name of the application that it is sent to."""
        return self.metadata.namespace, self.spec.app_ref.name

    @property
    def is_from_channel(self) -> bool:
        """Whether it stands for one that is in the log already: made by the operator, and never given to a driver.

        Whoever else gives one such a name and annotations may send messages of its type anyway.
        """
        noted = self.metadata.annotations.get(ANNOTATION_LOGGED_AS, "")
        if not _LOGGED_AS.fullmatch(noted) or self.spec.type not in CLUSTER_TYPES:
            return False
        return self.metadata.name == channel_message_name(self.spec.app_ref.name, self._noted_app, noted)

    @property
    def log_id(self) -> str:
        """The id under which the application's driver reports it."""
        return self.metadata.annotations[ANNOTATION_LOGGED_AS] if self.is_from_channel else self.metadata.uid

    @property
    def app_uid(self) -> str:
        """The application that it belongs to; empty: to none yet."""
        return self.status.app_uid or (self._noted_app if self.is_from_channel else "")

    @property
    def origin(self) -> MessageOrigin | None:
        """The channel that it came from, None if somebody made it."""
        if not self.is_from_channel:
            return None
        said, labels = self.metadata.annotations, self.metadata.labels
        channel, source = labels.get(LABEL_CHANNEL, ""), said.get(ANNOTATION_SOURCE, "")
        return MessageOrigin(channel=channel, source=source, id=said.get(ANNOTATION_EVENT, ""))

    @property
    def _noted_app(self) -> str:
        return self.metadata.annotations.get(ANNOTATION_APP_UID, "")

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes of it."""
        return self.status.phase in FINAL

    @property
    def created(self) -> float:
        """When it was sent, seconds since the epoch by the API server's clock."""
        return self.metadata.creation_timestamp.timestamp() if self.metadata.creation_timestamp is not None else 0.0

    @property
    def ended(self) -> float:
        """When it ended, likewise, if it has."""
        done = self.status.completion_time
        return done.timestamp() if done is not None else self.created

    @property
    def expires(self) -> float:
        """When it is too late for it, likewise; 0 if it never is."""
        return self.created + self.spec.expiration_seconds if self.spec.expiration_seconds else 0.0


def channel_message_name(app: str, app_uid: str, log_id: str) -> str:
    """Return the name of the resource of a message from a channel: the same one whenever it is made.

    It is also that of its StreamSnapshot, and short enough for one.
    """
    return f"{app}-{hashlib.sha256(f'{app_uid} {log_id}'.encode()).hexdigest()[:12]}"


_json = msgspec.json.Decoder(ControlMessage)
_CONTROL, _LINES = re.compile(rb"\\u00(?:0[0-7bBeEfF]|1)"), re.compile(rb"\\u202[89]")
"""Escapes that stay as they are, and those that stand for three bytes."""
_TOO_LARGE = msgspec.Raw(b"false")
"""Stands for a payload that was dropped."""


def decode_message(body: bytes | msgspec.Raw) -> ControlMessage:
    """Return the ControlMessage that ``body`` holds; unknown fields are ignored, missing ones have their defaults.

    Raises:
        UnreadableAppError: a field is missing or of another type.
    """
    try:
        message = _json.decode(body)
        # A copy of its own, and not a part of the whole list's body; of one that no log takes, only that it is none.
        kept = compact_payload(message.spec.payload)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise unreadable_because(error) from error
    return msgspec.structs.replace(message, spec=msgspec.structs.replace(message.spec, payload=kept))


def compact_payload(payload: msgspec.Raw) -> msgspec.Raw:
    """Return a payload without what the API server's way of writing adds; if it is too long even so, that it is."""
    if _least_length(bytes(payload)) > LARGEST_PAYLOAD:
        return _TOO_LARGE
    # Decoded and encoded again: the API server writes <, > and & as six characters each.
    text = msgspec.json.encode(msgspec.json.decode(payload))
    return msgspec.Raw(text) if len(text) <= LARGEST_PAYLOAD else _TOO_LARGE


def _least_length(payload: bytes) -> int:
    """Return how many bytes a payload has at least without the escapes that need not be; it is not decoded for that."""
    if len(payload) <= LARGEST_PAYLOAD:
        return len(payload)
    # In pairs from the front, so that a backslash that is one itself begins no escape.
    bare = payload.replace(b"\\\\", b"..")
    escapes = bare.count(b"\\u")
    control, lines = len(_CONTROL.findall(bare)), len(_LINES.findall(bare))
    return len(payload) - 5 * (escapes - control - lines) - 3 * lines


def encode_message_status(status: ControlMessageStatus) -> dict[str, Any]:
    """Return the status as the API server stores it, as :func:`tidegate.api.status.status.encode_status` does."""
    encoded: dict[str, Any] = within_bounds("status", msgspec.to_builtins(status))
    return encoded


def without_payload(message: ControlMessage) -> ControlMessage:
    """Return a message as it is remembered when nothing more comes of it: there may be many, and payloads are long."""
    if bytes(message.spec.payload) == b"null":
        return message
    return msgspec.structs.replace(message, spec=msgspec.structs.replace(message.spec, payload=msgspec.Raw(b"null")))


def is_too_large(message: ControlMessage) -> bool:
    """Return whether its payload is longer than a message's may be."""
    return message.spec.payload is _TOO_LARGE


def is_too_deep(message: ControlMessage) -> bool:
    """Return whether its payload is nested deeper than a driver reads."""
    payload = bytes(message.spec.payload)
    if payload.count(b"[") + payload.count(b"{") <= DEEPEST_PAYLOAD:
        return False
    return is_deeper(msgspec.json.decode(payload), DEEPEST_PAYLOAD)


def payload_text(message: ControlMessage) -> str:
    """Return the payload as compact JSON."""
    return bytes(message.spec.payload).decode()
